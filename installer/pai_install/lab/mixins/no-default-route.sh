# no default route: only the addresses that packages come from, and the resolver, have a route
hosts=$(sed -n 's/^URIs: *[a-z]*:\/\/\([^/:]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
    apt-config dump | sed -n 's/^Acquire::https\{0,1\}::Proxy "[a-z]*:\/\/\([^/:"]*\).*/\1/p')
for address in $(sed -n 's/^nameserver //p' /etc/resolv.conf) $(getent ahostsv4 $hosts | cut -d' ' -f1 | sort -u); do
    ip route replace "$address" via "$GATEWAY"
done
# a repository may have more addresses than it answered with
for name in $hosts; do
    address=$(getent ahostsv4 "$name" | cut -d' ' -f1 | head -n 1)
    [ -z "$address" ] || echo "$address $name" >> /etc/hosts
done
ip route del default
