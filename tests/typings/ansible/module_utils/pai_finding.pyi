from playbooks.module_utils.pai_finding import *
