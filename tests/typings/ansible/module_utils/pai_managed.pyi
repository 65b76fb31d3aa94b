from playbooks.module_utils.pai_managed import *
