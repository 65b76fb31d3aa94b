"""kubernetes-configuration.yaml of OpenPAI v0.x."""

from __future__ import annotations

from pai_install.documents.document import Entries, Text
from pai_install.migrate.account import Fate
from pai_install.migrate.config import NewConfig
from pai_install.migrate.folder import OldFolder
from pai_install.site.load import CONFIG

KUBERNETES = "kubernetes-configuration.yaml"
_IMAGES = "images come from component_source, in the versions that belong to kubernetes_version"
_BALANCED = "every machine reaches the control planes by itself"
_DROPPED = {
    "cluster-dns": "pods ask CoreDNS, which asks the machines' own name servers",
    "load-balance-ip": _BALANCED,
    "api-servers-port": _BALANCED,
    "api-servers-http-schema": _BALANCED,
    "storage-backend": "kubeadm decides it",
    "etcd-data-path": "etcd keeps its data in /var/lib/etcd",
    "qos-switch": "OpenPAI's own services are not deployed",
    **dict.fromkeys(
        (
            "docker-registry", "hyperkube-version", "etcd-version", "apiserver-version", "kube-scheduler-version",
            "kube-controller-manager-version", "dashboard-version",
        ),
        _IMAGES,
    ),
}  # fmt: skip
_SERVICES = "service-cluster-ip-range"


def read_kubernetes(folder: OldFolder, config: NewConfig) -> None:
    """Takes the network of services."""
    if not folder.has(KUBERNETES):
        return
    file = folder.read(KUBERNETES)
    section = file.document.content.get("kubernetes")
    entries = section if isinstance(section, Entries) else Entries()
    network = entries.get(_SERVICES)
    if isinstance(network, Text) and network.strip():
        config.add("service_cidr", network.strip(), f"from {KUBERNETES}")
        config.settle(file.book, network.path, "service_cidr", network.strip())
    for key in entries.keys() & _DROPPED.keys():
        file.book.drop(("kubernetes", key), _DROPPED[key])
    file.book.whole(Fate.KEPT, f"{CONFIG}: service_cidr; the rest was about a Kubernetes of OpenPAI's own")
