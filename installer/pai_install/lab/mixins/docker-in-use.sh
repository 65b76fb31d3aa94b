# Docker of the distribution with settings of an admin's, and a container at work that has a stand-in for a GPU open
docker_packages
packages busybox-static
mkdir -p /etc/docker
cat > /etc/docker/daemon.json <<'END'
{
  "debug": true,
  "labels": ["rack=b7"],
  "insecure-registries": ["registry.corp.example:5000"],
  "log-opts": {"labels": "team"},
  "runtimes": {"quiet": {"path": "/usr/bin/runc", "runtimeArgs": ["--log-format=json"]}}
}
END
cat >> /etc/containerd/config.toml <<'END'

# of the admin
[metrics]
  address = "127.0.0.1:1338"
END
systemctl restart containerd
systemctl restart docker
root=$(mktemp -d)
mkdir "$root/bin"
cp /usr/bin/busybox "$root/bin/"
ln -s busybox "$root/bin/sh"
tar -C "$root" -c . | docker import - of-the-admin:1 >/dev/null
rm -r "$root"
# the stand-in for a GPU: a device of that name in a container, which is the machine's /dev/null
docker run -d --name at-work --label owner=admin -p 127.0.0.1:8088:80 --device /dev/null:/dev/nvidia7 of-the-admin:1 \
    /bin/sh -c 'exec 3< /dev/nvidia7; while true; do busybox date >> /beats; busybox sleep 1; done' >/dev/null
sha256sum /etc/docker/daemon.json /etc/containerd/config.toml >> /root/as-the-admin-left-them
