from playbooks.module_utils.pai_parallel import *
