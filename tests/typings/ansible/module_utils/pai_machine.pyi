from playbooks.module_utils.pai_machine import *
