from playbooks.module_utils.pai_api_ready import *
