from playbooks.module_utils.pai_origins import *
