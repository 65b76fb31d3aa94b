"""The operating system under Kubernetes: kernel, swap, names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from pai_install.parts.context import API_NAME, Context
from pai_install.parts.part import Part, RoleVariables, Space
from pai_install.registry.compile import wants_cache
from pai_install.registry.model import CACHE_HOST, STORE_HOST
from pai_install.site import Machine, Site

_SYSCTL: Mapping[str, int | str] = {
    "net.ipv4.ip_forward": 1,
    "net.bridge.bridge-nf-call-iptables": 1,
    "net.bridge.bridge-nf-call-ip6tables": 1,
    # what the kubelet wants to find
    "kernel.panic": 10,
    "kernel.panic_on_oops": 1,
    "vm.overcommit_memory": 1,
    # data loaders and log collectors watch many files
    "fs.inotify.max_user_instances": 8192,
    "fs.inotify.max_user_watches": 1048576,
}


class BaseVariables(RoleVariables):
    """kernel_modules: of all parts. hosts: address -> names in /etc/hosts. swap_off: the kubelet wants none."""

    role = "base"
    kernel_modules: tuple[str, ...]
    sysctl: dict[str, int | str]
    hosts: dict[str, tuple[str, ...]]
    swap_off: bool


class Base(Part):
    """Every machine."""

    name = "base"
    phase = "base"
    model = BaseVariables

    def applies(self, site: Site, machine: Machine) -> bool:
        """Nodes and the machines beside them."""
        del site, machine
        return True

    def variables(self, context: Context, machine: Machine) -> BaseVariables:
        """The same for machines of one kind but for the machine's own name."""
        return BaseVariables(
            kernel_modules=context.kernel_modules if machine.node else (),
            sysctl=_sysctl(context.site, machine),
            hosts=hosts(context, machine),
            swap_off=machine.node,
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The own name is in /etc/hosts, where that is ours to write."""
        return machine.hostname if site.settings.hosts_entries else (machine.node, machine.worker)

    def kernel_modules(self, site: Site) -> tuple[str, ...]:
        """Returns the modules that containers and Services need."""
        del site
        return ("overlay", "br_netfilter", "nf_conntrack", "nf_tables")

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """Packages and logs."""
        del site, machine
        return {"/": Space(1, 5)}


def _sysctl(site: Site, machine: Machine) -> dict[str, int | str]:
    """Returns the kernel parameters. The site overrides them, and `validate` refuses values that break Kubernetes."""
    parameters = {**(_SYSCTL if machine.node else {}), **site.settings.kernel_parameters}
    if not machine.worker:
        return parameters
    first, last = site.settings.host_daemon_port_start, site.settings.host_daemon_port_end
    # keeps ports that a job asked for from being taken by an outgoing connection
    return {**parameters, "net.ipv4.ip_local_port_range": f"{first} {last}"}


def hosts(context: Context, machine: Machine) -> dict[str, tuple[str, ...]]:
    """Address -> names that a machine must know, its own among them.

    A node knows the API's, the store's, the cache's, and those of control planes and storage servers. Other machines
    know the store's if they get programs from it. No machine knows the name of another worker: one more worker changes
    no other machine (docs/decisions).
    """
    site = context.site
    if not site.settings.hosts_entries:
        return {}
    servers = (*site.control_planes, *site.storage_servers) if machine.node else ()
    named: dict[str, tuple[str, ...]] = {other.hostip: (other.hostname,) for other in (*servers, machine)}
    leader = context.leader.hostip
    if not machine.node:
        return {**named, leader: (STORE_HOST,)} if site.services.monitoring else named
    served = (STORE_HOST, CACHE_HOST) if wants_cache(site) else (STORE_HOST,)
    return {"127.0.0.1": (API_NAME,), **named, leader: (*named[leader], *served)}
