"""The programs of every node: kubelet, kubeadm, kubectl, CNI plugins, crictl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pai_install.parts.context import Artifact, Context
from pai_install.parts.part import Part, Port, RoleVariables, Space, restarts
from pai_install.ports import KUBE_PROXY_HEALTH_PORT, KUBE_PROXY_METRICS_PORT, KUBELET_HEALTH_PORT, KUBELET_PORT
from pai_install.site import Machine, Site

_PROGRAMS = (
    ("kubeadm", "/usr/local/bin/kubeadm"),
    ("kubelet", "/usr/local/bin/kubelet"),
    ("kubectl", "/usr/local/bin/kubectl"),
    ("cni-plugins", "/opt/cni/bin"),
    ("crictl", "/usr/local/bin"),
)


class KubernetesNodeVariables(RoleVariables):
    """The programs of every node."""

    role = "kubernetes_node"
    artifacts: tuple[Artifact, ...]
    kubelet_args: Annotated[dict[str, str], restarts("kubelet.service")]


class KubernetesNode(Part):
    """Every machine."""

    name = "kubernetes_node"
    phase = "runtime"
    model = KubernetesNodeVariables
    after = ("component_store",)
    restarts = ("kubelet.service",)

    def variables(self, context: Context, machine: Machine) -> KubernetesNodeVariables:
        """Returns the variables. The kubelet uses the layout's address, even on a machine with several, and the site's
        resolver file.
        """
        settings = context.site.settings
        resolver = settings.kubelet_config.get("resolvConf")
        flags = {"node-ip": machine.hostip} | ({"resolv-conf": resolver} if isinstance(resolver, str) else {})
        # The site's own flags come last, so that they win.
        arguments = {**flags, **settings.kubelet_custom_flags}
        return KubernetesNodeVariables(artifacts=context.artifacts(_PROGRAMS), kubelet_args=arguments)

    def components(self, site: Site) -> frozenset[str]:
        """Returns Kubernetes, its network plugins, and the tool for direct access to the container runtime."""
        del site
        return frozenset({"kubernetes", "cni-plugins", "cri-tools"})

    def images(self, site: Site, machine: Machine) -> tuple[str, ...]:
        """kube-proxy runs on every node."""
        del site, machine
        return ("kube-proxy",)

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """The kubelet's, and those of kube-proxy, which runs on every node."""
        del site, machine
        return (
            Port(KUBELET_PORT, "kubelet", ("kubelet",), clients="control planes"),
            Port(KUBELET_HEALTH_PORT, "kubelet", ("kubelet",)),
            Port(KUBE_PROXY_METRICS_PORT, "kube-proxy", ("kube-proxy",)),
            Port(KUBE_PROXY_HEALTH_PORT, "kube-proxy", ("kube-proxy",)),
        )

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """Returns the space for volumes and logs of pods, and for programs."""
        del site, machine
        return {"/var/lib/kubelet": Space(1, 20), "/usr/local/bin": Space(1, 2)}
