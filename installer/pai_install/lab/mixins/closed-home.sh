# the login user's home is a file system that root may not enter, as a home on NFS with root_squash
packages bindfs fuse3
home=$(getent passwd "$LOGIN" | cut -d: -f6)
mkdir -p /etc/ssh/keys /srv/homes
install -m 644 "$home/.ssh/authorized_keys" "/etc/ssh/keys/$LOGIN"
echo 'AuthorizedKeysFile /etc/ssh/keys/%u' > /etc/ssh/sshd_config.d/20-keys.conf
[ -d "/srv/homes/$LOGIN" ] || cp -a "$home" "/srv/homes/$LOGIN"
cat > /usr/local/sbin/open-fuse <<'END'
#!/bin/sh
# /dev/fuse is the controller host's own, which may be for root alone
[ -e /dev/fuse-for-all ] || mknod -m 666 /dev/fuse-for-all c 10 229
mountpoint -q /dev/fuse && umount /dev/fuse
mount --bind /dev/fuse-for-all /dev/fuse
END
chmod 755 /usr/local/sbin/open-fuse
cat > /usr/local/bin/closed-home <<END
#!/bin/sh
# FUSE 2 mounts over files only when told so, FUSE 3 does not know the word
bindfs --no-allow-other /srv/homes/$LOGIN $home || bindfs --no-allow-other -o nonempty /srv/homes/$LOGIN $home
END
chmod 755 /usr/local/bin/closed-home
cat > /etc/systemd/system/closed-home.service <<END
[Unit]
Description=Mount a home that root may not enter
Before=ssh.service

[Service]
Type=forking
User=$LOGIN
WorkingDirectory=/
ExecStartPre=+/usr/local/sbin/open-fuse
ExecStart=/usr/local/bin/closed-home

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable --now --quiet closed-home.service
systemctl reload ssh
if ls "$home" >/dev/null 2>&1; then
    echo "root still sees into $home" >&2
    exit 1
fi
