from playbooks.module_utils.pai_quota import *
