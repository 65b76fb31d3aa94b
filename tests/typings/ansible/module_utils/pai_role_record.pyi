from playbooks.module_utils.pai_role_record import *
