from playbooks.module_utils.pai_rollback import *
