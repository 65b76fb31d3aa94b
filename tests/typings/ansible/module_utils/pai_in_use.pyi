from playbooks.module_utils.pai_in_use import *
