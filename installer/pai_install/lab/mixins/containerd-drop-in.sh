# what `nvidia-ctk runtime configure --set-as-default` writes beside containerd's configuration
mkdir -p /etc/containerd/conf.d
grep -qs '^imports' /etc/containerd/config.toml || {
    [ -e /etc/containerd/config.toml ] || echo 'version = 2' > /etc/containerd/config.toml
    sed -i '1i imports = ["/etc/containerd/conf.d/*.toml"]' /etc/containerd/config.toml
}
# it writes for the containerd that is there
case $(containerd --version 2>/dev/null) in
    *' 1.'* | *' v1.'*) version=2 plugin=io.containerd.grpc.v1.cri ;;
    *) version=3 plugin=io.containerd.cri.v1.runtime ;;
esac
cat > /etc/containerd/conf.d/99-nvidia.toml <<END
version = $version

[plugins."$plugin".containerd]
  default_runtime_name = "nvidia"
  ignore_rdt_not_enabled_errors = true

[plugins."$plugin".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"

[plugins."$plugin".containerd.runtimes.nvidia.options]
  BinaryName = "/usr/bin/nvidia-container-runtime"
  SystemdCgroup = false
END
sha256sum /etc/containerd/config.toml >> /root/as-the-admin-left-them
