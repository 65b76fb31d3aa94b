from playbooks.module_utils.pai_json import *
