# needrestart restarts, unasked, what runs as a replaced program after each installation of packages, as on Ubuntu 24.04
packages needrestart
mkdir -p /etc/needrestart/conf.d
printf '$nrconf{restart} = q(a);\n' > /etc/needrestart/conf.d/lab.conf
# a service of the admin's whose program was replaced since it began
cp --remove-destination /bin/sleep /usr/local/bin/at-work
printf '[Service]\nType=exec\nExecStart=/usr/local/bin/at-work infinity\n' > /etc/systemd/system/at-work.service
systemctl daemon-reload
systemctl restart at-work.service
cp --remove-destination /bin/sleep /usr/local/bin/at-work
