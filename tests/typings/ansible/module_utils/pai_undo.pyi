from playbooks.module_utils.pai_undo import *
