#!/bin/sh
# What a role could have changed on this machine: files, packages, units and kernel parameters, as lines to compare.
# Left out: what time alone changes.
set -eu
find /etc /opt /usr /root /var/lib/pai-install -xdev -path /etc/mtab -prune -o \
    ! -type d ! -name '*.pyc' -printf '%p %y %m %U %G %s %T@ %l\n' 2>/dev/null | sort
dpkg-query --show --showformat '${Package} ${Version} ${db:Status-Status}\n'
systemctl list-unit-files --no-legend --plain | sort
systemctl list-units --type=service,mount,swap --state=active --no-legend --plain | awk '{print $1, $4}' |
    grep -v -e '^user' -e '^session' -e '^apt-' -e '^systemd-tmpfiles-clean' | sort
sysctl -e net.ipv4.ip_forward net.ipv4.ip_local_port_range net.bridge.bridge-nf-call-iptables 2>/dev/null || true
