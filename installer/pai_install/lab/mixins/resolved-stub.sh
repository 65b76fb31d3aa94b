# names are asked at the stub of systemd-resolved, as on Ubuntu: /etc/resolv.conf says 127.0.0.53
servers=$(sed -n 's/^nameserver //p' /etc/resolv.conf | grep -v '^127\.' | tr '\n' ' ')
[ -n "$servers" ] || { echo "/etc/resolv.conf names no server that resolved could ask" >&2; exit 1; }
mkdir -p /etc/systemd/resolved.conf.d
printf '[Resolve]\nDNS=%s\n' "$servers" > /etc/systemd/resolved.conf.d/lab.conf
# a package of its own since Debian 12 and Ubuntu 24.04
[ -e /usr/lib/systemd/systemd-resolved ] || [ -e /lib/systemd/systemd-resolved ] || packages systemd-resolved
systemctl enable --quiet systemd-resolved
systemctl restart systemd-resolved
ln -sfn ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
