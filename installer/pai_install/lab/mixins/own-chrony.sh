# chrony with a server of an admin's
packages chrony
cat >> /etc/chrony/chrony.conf <<'END'

# of the admin
server 192.0.2.123 iburst
END
# the clock of a lab machine is the box's
grep -q 'DAEMON_OPTS="-x ' /etc/default/chrony || sed -i 's/^DAEMON_OPTS="/DAEMON_OPTS="-x /' /etc/default/chrony
systemctl restart chrony
sha256sum /etc/chrony/chrony.conf >> /root/as-the-admin-left-them
