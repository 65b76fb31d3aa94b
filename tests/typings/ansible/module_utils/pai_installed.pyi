from playbooks.module_utils.pai_installed import *
