"""A control plane: API server, etcd, scheduler, controller manager, by kubeadm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pai_install.parts.context import API_NAME, Artifact, Context
from pai_install.parts.part import Part, Port, RoleVariables, Space, restarts
from pai_install.ports import (
    API_SERVER_PORT,
    CONTROLLER_MANAGER_PORT,
    ETCD_CLIENT_PORT,
    ETCD_METRICS_PORT,
    ETCD_PEER_PORT,
    SCHEDULER_PORT,
)
from pai_install.registry.model import STORE_HOST
from pai_install.site import Machine, Site
from pai_install.site.directory import directory_of
from pai_install.users.directory import authenticator

# Its role puts a command etcdctl on PATH that knows etcd's address and certificates. kubeadm upgrades the control plane
# before the kubelet of the machine, and what comes with it, has that version.
_PROGRAMS = (
    ("etcdctl", "/usr/local/lib/pai-install/etcdctl"),
    ("kubeadm", "/usr/local/lib/pai-install/kubeadm"),
    ("etcdutl", "/usr/local/lib/pai-install/etcdutl"),
)


class ControlPlaneVariables(RoleVariables):
    """leader: the control plane that the others join. jwt: who may log in beside users of the cluster's own."""

    role = "control_plane"
    artifacts: tuple[Artifact, ...]
    version: str
    image_repository: str
    coredns_tag: str
    etcd_tag: str
    node_name: str
    address: str
    schedulable: bool
    endpoint: str
    sans: tuple[str, ...]
    pod_cidr: str
    service_cidr: str
    node_prefix: int
    dns_apart: bool
    kubelet_config: Annotated[dict[str, Any], restarts("kubelet.service")]
    jwt: tuple[dict[str, Any], ...]
    leader: str
    kubeconfig_dest: str


class ControlPlane(Part):
    """The control planes, one after the other."""

    name = "control_plane"
    phase = "control-plane"
    model = ControlPlaneVariables
    after = ("container_runtime", "system_images", "kubernetes_node", "api_proxy")
    namespaces = ("kube-system",)
    # where the administrator's kubeconfig is written on the controller host
    not_settings = frozenset({"control_plane_kubeconfig_dest"})
    given_to_others = frozenset({"control_plane_kubelet_config"})

    def applies(self, site: Site, machine: Machine) -> bool:
        """The control planes."""
        del site
        return machine.control_plane

    def variables(self, context: Context, machine: Machine) -> ControlPlaneVariables:
        """kubeadm's settings."""
        site, settings = context.site, context.site.settings
        directory = directory_of(site.services)
        sans = [API_NAME, *(word for master in site.control_planes for word in (master.hostname, master.hostip))]
        return ControlPlaneVariables(
            artifacts=context.artifacts(_PROGRAMS),
            version=context.components.kubernetes_version,
            image_repository=STORE_HOST,
            coredns_tag=context.tag("coredns"),
            etcd_tag=context.tag("etcd"),
            node_name=machine.hostname,
            address=machine.hostip,
            schedulable=machine.worker,
            endpoint=context.endpoint,
            # Programs on a control plane ask the API server beside them, so its certificate must hold these names too.
            sans=tuple(dict.fromkeys([*sans, "127.0.0.1", "localhost"])),
            pod_cidr=settings.pod_cidr,
            service_cidr=settings.service_cidr,
            node_prefix=settings.pod_cidr_node_prefix,
            # On a single node, the copies of the DNS can only stand together.
            dns_apart=len(site.nodes) > 1,
            kubelet_config=dict(settings.kubelet_config),
            jwt=(authenticator(directory),) if directory else (),
            leader=context.leader.hostname,
            kubeconfig_dest=str(context.state_dir / "kubeconfig"),
        )

    def components(self, site: Site) -> frozenset[str]:
        """Returns the components that kubeadm requires."""
        del site
        return frozenset({"kubernetes", "etcd", "coredns", "pause"})

    def images(self, site: Site, machine: Machine) -> tuple[str, ...]:
        """Pods of the cluster's DNS may run anywhere."""
        del site
        own = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
        return ("coredns", *own) if machine.control_plane else ("coredns",)

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """etcd's peers are the other control planes."""
        del site, machine
        return (
            Port(API_SERVER_PORT, "Kubernetes API", ("kube-apiserver",), clients="machines"),
            Port(ETCD_CLIENT_PORT, "etcd", ("etcd",), clients="control planes"),
            Port(ETCD_PEER_PORT, "etcd", ("etcd",), clients="control planes"),
            Port(ETCD_METRICS_PORT, "etcd", ("etcd",)),
            Port(CONTROLLER_MANAGER_PORT, "kube-controller-manager", ("kube-controller-manager",)),
            Port(SCHEDULER_PORT, "kube-scheduler", ("kube-scheduler",)),
        )

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """etcd's data."""
        del site, machine
        return {"/var/lib/etcd": Space(2, 10)}
