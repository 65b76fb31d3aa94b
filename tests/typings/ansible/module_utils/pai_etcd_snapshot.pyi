from playbooks.module_utils.pai_etcd_snapshot import *
