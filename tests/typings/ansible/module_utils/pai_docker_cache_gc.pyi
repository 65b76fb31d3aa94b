from playbooks.module_utils.pai_docker_cache_gc import *
