from playbooks.module_utils.pai_nvidia import *
