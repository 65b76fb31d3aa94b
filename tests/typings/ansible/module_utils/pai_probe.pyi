from playbooks.module_utils.pai_probe import *
