#!/bin/sh
# Managed by pai-install: changes are overwritten.
# A token for the publisher that ends by itself: no password of it lies on the machine.
set -eu
umask 077
/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace kube-system \
    create token pai-group-network --duration 24h >"$RUNTIME_DIRECTORY/token"
chown --reference="$RUNTIME_DIRECTORY/" "$RUNTIME_DIRECTORY/token"
