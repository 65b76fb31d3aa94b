#!/bin/sh
# Managed by pai-install: changes are overwritten.
# etcdctl with the address and the certificates of this control plane's etcd. A variable or a flag of yours counts instead;
# etcdctl refuses both for one thing, so a flag that is given keeps its variable unset. No key is copied: root reads kubeadm's.

pki=/etc/kubernetes/pki/etcd
words=" $* "

use() { # use FLAG VARIABLE=VALUE
    case $words in *" --$1 "* | *" --$1="*) return ;; esac
    export "$2"
}

use endpoints "ETCDCTL_ENDPOINTS=${ETCDCTL_ENDPOINTS:-https://127.0.0.1:2379}"
use cacert "ETCDCTL_CACERT=${ETCDCTL_CACERT:-$pki/ca.crt}"
use cert "ETCDCTL_CERT=${ETCDCTL_CERT:-$pki/healthcheck-client.crt}"
use key "ETCDCTL_KEY=${ETCDCTL_KEY:-$pki/healthcheck-client.key}"

exec /usr/local/lib/pai-install/etcdctl "$@"
