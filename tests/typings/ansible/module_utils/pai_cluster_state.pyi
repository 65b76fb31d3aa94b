from playbooks.module_utils.pai_cluster_state import *
