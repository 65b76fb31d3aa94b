# files of other pod networks in /etc/cni/net.d: one that comes first in the alphabet, and podman's
mkdir -p /etc/cni/net.d
cat > /etc/cni/net.d/05-old.conflist <<'END'
{"cniVersion": "0.4.0", "name": "old", "plugins": [{"type": "bridge", "bridge": "old0"}]}
END
cat > /etc/cni/net.d/87-podman-bridge.conflist <<'END'
{"cniVersion": "0.4.0", "name": "podman", "plugins": [{"type": "bridge", "bridge": "cni-podman0", "isGateway": true,
 "ipMasq": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]]}}]}
END
