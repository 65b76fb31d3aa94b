from playbooks.module_utils.pai_units import *
