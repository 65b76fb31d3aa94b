from playbooks.module_utils.pai_images import *
