# a rule of an admin's in nftables and one in iptables, to be recognised again
packages nftables iptables
nft -f - <<'END'
table inet admin {
    chain input {
        type filter hook input priority 0; policy accept;
        tcp dport 9999 drop comment "of the admin"
    }
}
END
iptables -A INPUT -p tcp --dport 9998 -m comment --comment of-the-admin -j DROP
