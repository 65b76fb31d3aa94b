from playbooks.module_utils.pai_root_kubectl import *
