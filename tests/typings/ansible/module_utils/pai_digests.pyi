from playbooks.module_utils.pai_digests import *
