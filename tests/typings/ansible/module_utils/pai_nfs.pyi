from playbooks.module_utils.pai_nfs import *
