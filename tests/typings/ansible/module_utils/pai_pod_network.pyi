from playbooks.module_utils.pai_pod_network import *
