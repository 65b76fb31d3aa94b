from playbooks.module_utils.pai_probe_network import *
