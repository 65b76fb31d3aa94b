from playbooks.module_utils.pai_running import *
