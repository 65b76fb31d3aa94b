# the default route leaves by a second interface, whose packets are smaller than those between the machines
second="${ADDRESS%.*}.$((${ADDRESS##*.} + 100))"
ip link add link eth0 name mgmt0 type macvlan mode bridge
ip link set mgmt0 mtu 1400 up
ip addr add "$second/32" dev mgmt0
ip route replace default via "$GATEWAY" dev mgmt0 onlink src "$second"
