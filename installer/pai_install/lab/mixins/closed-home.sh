# the login user's home is a file system that root may not enter, as a home on NFS with root_squash
packages bindfs fuse3
home=$(getent passwd "$LOGIN" | cut -d: -f6)
mkdir -p /etc/ssh/keys /srv/homes
cp "$home/.ssh/authorized_keys" "/etc/ssh/keys/$LOGIN"
chmod 644 "/etc/ssh/keys/$LOGIN"
echo 'AuthorizedKeysFile /etc/ssh/keys/%u' > /etc/ssh/sshd_config.d/20-keys.conf
cp -a "$home" "/srv/homes/$LOGIN"
cat > /etc/systemd/system/closed-home.service <<END
[Unit]
Description=Mount a home that root may not enter
Before=ssh.service

[Service]
Type=forking
User=$LOGIN
WorkingDirectory=/
ExecStart=/usr/bin/bindfs --no-allow-other /srv/homes/$LOGIN $home

[Install]
WantedBy=multi-user.target
END
systemctl enable --now --quiet closed-home.service
systemctl reload ssh
if ls "$home" >/dev/null 2>&1; then
    echo "root still sees into $home" >&2
    exit 1
fi
