from playbooks.module_utils.pai_probe_apt import *
