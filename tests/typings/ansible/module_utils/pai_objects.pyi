from playbooks.module_utils.pai_objects import *
