# what an earlier cluster left: containerd's file with its range of pods, a bridge cni0 with an address of that range
mkdir -p /etc/cni/net.d
cat > /etc/cni/net.d/10-containerd-net.conflist <<'END'
{"cniVersion": "1.0.0", "name": "containerd-net", "plugins": [{"type": "bridge", "bridge": "cni0",
 "isDefaultGateway": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.200.77.0/24"}]]}}]}
END
ip link add cni0 type bridge
ip addr add 10.200.77.1/24 dev cni0
ip link set cni0 up
