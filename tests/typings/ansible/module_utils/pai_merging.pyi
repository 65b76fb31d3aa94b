from playbooks.module_utils.pai_merging import *
