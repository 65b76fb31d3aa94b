from playbooks.module_utils.pai_cluster_settings import *
