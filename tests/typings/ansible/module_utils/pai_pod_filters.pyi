from playbooks.module_utils.pai_pod_filters import *
