from playbooks.module_utils.pai_node_login import *
