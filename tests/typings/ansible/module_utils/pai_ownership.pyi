from playbooks.module_utils.pai_ownership import *
