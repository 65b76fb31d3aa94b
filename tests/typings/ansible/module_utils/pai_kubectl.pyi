from playbooks.module_utils.pai_kubectl import *
