# Docker of docker-ce (stand-ins) with a docker.list as Docker's instructions wrote it: no key named, it is one of all (apt-key)
docker_ce ''
