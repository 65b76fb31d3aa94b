# what `nvidia-ctk runtime configure --set-as-default` writes beside containerd's configuration
mkdir -p /etc/containerd/conf.d
grep -qs '^imports' /etc/containerd/config.toml || {
    [ -e /etc/containerd/config.toml ] || echo 'version = 2' > /etc/containerd/config.toml
    sed -i '1i imports = ["/etc/containerd/conf.d/*.toml"]' /etc/containerd/config.toml
}
cat > /etc/containerd/conf.d/99-nvidia.toml <<'END'
version = 3

[plugins]
  [plugins."io.containerd.cri.v1.runtime"]
    [plugins."io.containerd.cri.v1.runtime".containerd]
      default_runtime_name = "nvidia"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes]
        [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
          runtime_type = "io.containerd.runc.v2"
          [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
            BinaryName = "/usr/bin/nvidia-container-runtime"
            SystemdCgroup = false
END
