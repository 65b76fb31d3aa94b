from playbooks.module_utils.pai_static_pods import *
