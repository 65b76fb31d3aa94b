from playbooks.module_utils.pai_kubeadm_upgrade import *
