# sshd answers the other machines and not the controller host: ssh has to jump (`lab ssh` reaches it no longer)
nft -f - <<END
table inet bastion {
    chain input {
        type filter hook input priority -10; policy accept;
        ct state established,related accept
        ip saddr $GATEWAY tcp dport 22 drop
    }
}
END
