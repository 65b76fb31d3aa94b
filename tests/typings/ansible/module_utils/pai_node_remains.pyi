from playbooks.module_utils.pai_node_remains import *
