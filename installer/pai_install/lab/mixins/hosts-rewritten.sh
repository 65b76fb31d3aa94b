# /etc/hosts is written from a template at every boot, as cloud-init does with manage_etc_hosts
mkdir -p /etc/cloud/templates
printf 'manage_etc_hosts: true\n' > /etc/cloud/cloud.cfg
printf '## template:jinja\n' | cat - /etc/hosts > /etc/cloud/templates/hosts.debian.tmpl
cat > /usr/local/sbin/rewrite-hosts <<'END'
#!/bin/sh
sed '/^##/d' /etc/cloud/templates/hosts.debian.tmpl > /etc/hosts
END
chmod 755 /usr/local/sbin/rewrite-hosts
cat > /etc/systemd/system/rewrite-hosts.service <<'END'
[Unit]
Description=Write /etc/hosts from its template, as cloud-init does at every boot
Before=network-pre.target kubelet.service containerd.service

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/rewrite-hosts

[Install]
WantedBy=multi-user.target
END
systemctl enable --quiet rewrite-hosts.service
