from playbooks.module_utils.pai_content import *
