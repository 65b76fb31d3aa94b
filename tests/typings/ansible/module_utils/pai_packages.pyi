from playbooks.module_utils.pai_packages import *
