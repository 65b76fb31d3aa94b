# Docker's unit requires containerd's, as in its packages before version 23: it stops when containerd restarts
mkdir -p /etc/systemd/system/docker.service.d
printf '[Unit]\nRequires=containerd.service\n' > /etc/systemd/system/docker.service.d/old-unit.conf
systemctl daemon-reload
