"""TCP ports of a control plane that the cluster itself uses. A test of the console compares them with preflight's."""

from __future__ import annotations

from pai_install.ports import (
    ALERTMANAGER_PORT,
    API_PROXY_PORT,
    API_SERVER_PORT,
    CONSOLE_METRICS_PORT,
    CONTROLLER_MANAGER_PORT,
    ETCD_CLIENT_PORT,
    ETCD_METRICS_PORT,
    ETCD_PEER_PORT,
    GOSSIP_PORT,
    KUBE_PROXY_HEALTH_PORT,
    KUBE_PROXY_METRICS_PORT,
    KUBE_STATE_METRICS_OWN_PORT,
    KUBE_STATE_METRICS_PORT,
    KUBELET_HEALTH_PORT,
    KUBELET_PORT,
    LOG_COLLECTOR_PORT,
    LOG_STORE_PORT,
    NFS_PORT,
    NODE_EXPORTER_PORT,
    PROMETHEUS_PORT,
    SCHEDULER_PORT,
)
from pai_install.site.model import Site
from pai_install.site.monitoring import has_gossip
from pai_install.site.services.registries import CACHE_PORT

# of every site: port -> its purpose, in the words of preflight
KUBERNETES_PORTS = {
    API_SERVER_PORT: "Kubernetes API",
    API_PROXY_PORT: "local API load balancer",
    **dict.fromkeys((ETCD_CLIENT_PORT, ETCD_PEER_PORT, ETCD_METRICS_PORT), "etcd"),
    **dict.fromkeys((KUBELET_PORT, KUBELET_HEALTH_PORT), "kubelet"),
    **dict.fromkeys((KUBE_PROXY_METRICS_PORT, KUBE_PROXY_HEALTH_PORT), "kube-proxy"),
    CONTROLLER_MANAGER_PORT: "kube-controller-manager",
    SCHEDULER_PORT: "kube-scheduler",
}


def cluster_ports(site: Site) -> dict[int, str]:
    """Port -> its purpose, on a control plane of the site, without the ports that users of the console ask."""
    services, settings = site.services, site.settings
    found = {**KUBERNETES_PORTS, settings.component_store_port: "component store"}
    if any(machine.storage for machine in site.control_planes):
        found[NFS_PORT] = "NFS"
    if settings.enable_docker_cache:
        found[services.docker_cache.service_nodeport if services.docker_cache else CACHE_PORT] = "Docker cache"
    if services.monitoring is not None:
        found |= {
            PROMETHEUS_PORT: "Prometheus",
            ALERTMANAGER_PORT: "Alertmanager",
            **dict.fromkeys((KUBE_STATE_METRICS_PORT, KUBE_STATE_METRICS_OWN_PORT), "kube-state-metrics"),
            services.node_exporter.port if services.node_exporter else NODE_EXPORTER_PORT: "metrics",
            CONSOLE_METRICS_PORT: "metrics of the console",
        }
    if has_gossip(site):
        found[GOSSIP_PORT] = "gossip of Alertmanagers"
    if services.logs is not None:
        found |= {LOG_STORE_PORT: "store of logs", LOG_COLLECTOR_PORT: "collectors of logs"}
    return found
