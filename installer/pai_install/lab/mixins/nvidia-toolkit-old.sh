# an older NVIDIA toolkit of packages: stand-ins for its hook and for nvidia-container-cli, which knows no new options
cat > /usr/bin/nvidia-container-runtime-hook <<'END'
#!/bin/sh
# a stand-in
echo "nvidia-container-runtime-hook of the package (stand-in)" >&2
END
cat > /usr/bin/nvidia-container-cli <<'END'
#!/bin/sh
# a stand-in: version 1.17.4, which does not know --cuda-compat-mode
case "$*" in *--cuda-compat-mode*) echo "nvidia-container-cli: unrecognized option '--cuda-compat-mode'" >&2; exit 64 ;; esac
END
chmod 755 /usr/bin/nvidia-container-runtime-hook /usr/bin/nvidia-container-cli
