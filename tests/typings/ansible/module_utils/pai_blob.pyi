from playbooks.module_utils.pai_blob import *
