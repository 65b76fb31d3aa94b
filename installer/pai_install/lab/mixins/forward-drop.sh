# a firewall that drops what the machine forwards, as Docker, ufw and firewalld leave it
packages iptables
iptables -P FORWARD DROP
