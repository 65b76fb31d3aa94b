from playbooks.module_utils.pai_file_set import *
