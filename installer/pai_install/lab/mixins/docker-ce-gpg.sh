# Docker of docker-ce (stand-ins) with a docker.list as Docker's instructions wrote it: a key in /etc/apt/keyrings/docker.gpg
docker_ce '/etc/apt/keyrings/docker.gpg'
