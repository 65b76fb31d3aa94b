# Docker of docker-ce (stand-ins) with a docker.list as Docker's instructions wrote it: a key in /usr/share/keyrings
docker_ce '/usr/share/keyrings/docker-archive-keyring.gpg'
