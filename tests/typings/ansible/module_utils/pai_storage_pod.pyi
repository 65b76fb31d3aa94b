from playbooks.module_utils.pai_storage_pod import *
