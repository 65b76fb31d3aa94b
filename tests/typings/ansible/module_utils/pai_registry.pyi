from playbooks.module_utils.pai_registry import *
