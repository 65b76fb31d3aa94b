from playbooks.module_utils.pai_certificates import *
