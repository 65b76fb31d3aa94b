# no default route: only the resolver and the addresses that packages come from have a route
hosts=$({
    sed -n 's/^URIs: *[a-z]*:\/\/\([^/:]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
    apt-config dump | sed -n 's/^Acquire::https\{0,1\}::Proxy "[a-z]*:\/\/\([^/:"]*\).*/\1/p'
} | sort -u)
for name in $hosts; do
    # it may have more addresses than one answer tells: it is this one from now on
    address=$(getent ahostsv4 "$name" | cut -d' ' -f1 | head -n 1)
    [ -z "$address" ] || echo "$address $name" >> /etc/hosts
done
for address in $(sed -n 's/^nameserver //p' /etc/resolv.conf) $(for name in $hosts; do getent ahostsv4 "$name"; done | cut -d' ' -f1); do
    ip route replace "$address" via "$GATEWAY"
done
ip route del default
