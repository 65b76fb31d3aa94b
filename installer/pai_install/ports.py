"""Ports that several parts of the program, or programs on machines, share: the only definition.

Programs on machines cannot import this module. tests/contract/test_ports.py compares their numbers with these.
"""

from __future__ import annotations

from typing import Final

API_SERVER_PORT: Final = 6443
API_PROXY_PORT: Final = 7443
"""HAProxy of each machine, which forwards to the API servers."""
ETCD_CLIENT_PORT: Final = 2379
ETCD_PEER_PORT: Final = 2380
KUBELET_PORT: Final = 10250
KUBELET_HEALTH_PORT: Final = 10248
"""Only its own machine asks it, as the next two."""
KUBE_PROXY_METRICS_PORT: Final = 10249
KUBE_PROXY_HEALTH_PORT: Final = 10256
NFS_PORT: Final = 2049
VXLAN_PORT: Final = 8472
"""UDP: flannel's packets between machines."""
HIVED_PORT: Final = 9096
"""HiveD, on the loopback of its pod; so is the next one."""
HIVED_EXTENDER_PORT: Final = 9196
"""The bridge before HiveD: calls of the kube-scheduler beside it."""
HIVED_BRIDGE_PORT: Final = 9195
"""The bridge: probes and metrics."""
NODE_EXPORTER_PORT: Final = 9100
"""Metrics of a machine, as OpenPAI's node-exporter."""
PROMETHEUS_PORT: Final = 9091
"""On the loopback of a control plane, as the next three: nothing elsewhere asks them."""
ALERTMANAGER_PORT: Final = 9093
KUBE_STATE_METRICS_PORT: Final = 9105
KUBE_STATE_METRICS_OWN_PORT: Final = 9106
GOSSIP_PORT: Final = 9094
"""Alertmanagers of several control planes, each with a certificate."""
CONSOLE_METRICS_PORT: Final = 9109
"""The console's own numbers, on the loopback of its machine."""
LOG_STORE_PORT: Final = 9428
"""The store of logs, on the loopback of a control plane."""
LOG_COLLECTOR_PORT: Final = 9430
"""Collectors of logs write here, each with a certificate."""
SCHEDULER_PORT: Final = 10259
CONTROLLER_MANAGER_PORT: Final = 10257
ETCD_METRICS_PORT: Final = 2381
