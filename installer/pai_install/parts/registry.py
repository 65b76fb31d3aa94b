"""Every part, in the order of an installation, and queries over all parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pai_install.components.model import ComponentSet
from pai_install.parts.addon import AddonPart
from pai_install.parts.api_proxy import ApiProxy
from pai_install.parts.base import Base
from pai_install.parts.cluster_verify import ClusterVerify
from pai_install.parts.component_store import ComponentStore
from pai_install.parts.container_runtime import ContainerRuntime
from pai_install.parts.context import Context
from pai_install.parts.control_plane import ControlPlane
from pai_install.parts.docker_cache import CacheConfiguration
from pai_install.parts.etcd_backup import EtcdBackup
from pai_install.parts.gpu_use import GpuUse
from pai_install.parts.group_network import GroupNetwork
from pai_install.parts.job_recorder import JobRecorder
from pai_install.parts.kubernetes_node import KubernetesNode
from pai_install.parts.machine_reset import MachineResetVariables
from pai_install.parts.node_exporter import NodeExporterPart
from pai_install.parts.node_labels import NodeLabels
from pai_install.parts.nvidia_driver import NvidiaDriver
from pai_install.parts.part import Part, Port, RoleVariables, Space
from pai_install.parts.pod_forwarding import PodForwarding
from pai_install.parts.registry_client import RegistryClient
from pai_install.parts.storage_client import StorageClient
from pai_install.parts.storage_server import StorageServer
from pai_install.parts.system_images import SystemImages
from pai_install.parts.time_sync import TimeSync
from pai_install.parts.worker import Worker
from pai_install.ports import API_SERVER_PORT
from pai_install.registry.identity import Identity
from pai_install.site import Machine, Site
from pai_install.system.content import content_dir


def addon_parts(folder: Path) -> tuple[AddonPart, ...]:
    """Returns the add-ons of a folder, in the order of `after` and then by name.

    Raises ValueError for a cycle, which is a bug in pai-install.
    """
    waiting = {path.parent.name: AddonPart(path.parent) for path in sorted(folder.glob("*/addon.yml"))}
    ordered: list[AddonPart] = []
    while waiting:
        ready = [name for name, part in waiting.items() if not waiting.keys() & set(part.definition.after)]
        if not ready:
            raise ValueError(f"add-ons wait for each other: {', '.join(waiting)}")
        ordered += [waiting.pop(name) for name in ready]
    return tuple(ordered)


ADDONS: tuple[AddonPart, ...] = addon_parts(content_dir() / "addons")

PARTS: tuple[Part, ...] = (
    Base(),
    NvidiaDriver(),
    TimeSync(),
    StorageServer(),
    StorageClient(),
    ComponentStore(),
    ContainerRuntime(),
    SystemImages(),
    KubernetesNode(),
    ApiProxy(),
    PodForwarding(),
    NodeExporterPart(),
    ControlPlane(),
    *(addon for addon in ADDONS if addon.phase == "network"),
    Worker(),
    NodeLabels(),
    GpuUse(),
    GroupNetwork(),
    CacheConfiguration(),
    *(addon for addon in ADDONS if addon.phase == "addons"),
    JobRecorder(),
    EtcdBackup(),
    RegistryClient(),
    ClusterVerify(),
)


# Each role's variables, once.
ROLE_MODELS: tuple[type[RoleVariables], ...] = (
    *dict.fromkeys(part.model for part in PARTS),
    MachineResetVariables,
)


def part_named(name: str) -> Part:
    """The part of that name. Raises KeyError."""
    for part in PARTS:
        if part.name == name:
            return part
    raise KeyError(name)


def parts_of(site: Site, machine: Machine) -> Iterator[Part]:
    """The parts that may have work on a machine."""
    return (part for part in PARTS if part.applies(site, machine))


def needed_components(site: Site) -> frozenset[str]:
    """Returns the components in the catalogue that the site needs."""
    return frozenset(name for part in PARTS for name in part.components(site))


def ports(site: Site, machine: Machine) -> tuple[Port, ...]:
    """Returns every port that must be free on a machine, or used by our programs."""
    return tuple(port for part in PARTS if part.listens(site, machine) for port in part.ports(site, machine))


def machine_ports(site: Site) -> dict[str, tuple[int, ...]]:
    """Protocol -> ports of machines that no pod needs."""
    found = {port for machine in site.present_machines for port in ports(site, machine)}
    # Pods reach the API server by its service, whose packets end at this port of a machine.
    closed = {port for port in found if port.clients != "pods" and port.port != API_SERVER_PORT}
    protocols = sorted({port.protocol for port in closed})
    return {name: tuple(sorted({port.port for port in closed if port.protocol == name})) for name in protocols}


def space(site: Site, machine: Machine) -> dict[str, Space]:
    """Path -> disk space that an installation needs there."""
    return {path: space for part in parts_of(site, machine) for path, space in part.space(site, machine).items()}


def kernel_modules(site: Site) -> tuple[str, ...]:
    """Kernel modules that every node must have."""
    return tuple(dict.fromkeys(name for part in PARTS for name in part.kernel_modules(site)))


def images(site: Site, machine: Machine) -> tuple[str, ...]:
    """Images (of the catalogue) that a machine's pods may be started from."""
    return tuple(dict.fromkeys(name for part in PARTS for name in part.images(site, machine)))


def system_namespaces() -> tuple[str, ...]:
    """Returns the namespaces of system pods."""
    return tuple(dict.fromkeys(name for part in PARTS for name in part.namespaces))


def make_context(site: Site, components: ComponentSet, state_dir: Path, identity: Identity | None = None) -> Context:
    """Returns the input of the parts' variables."""
    pods = partial(images, site)
    given = kernel_modules(site), system_namespaces(), pods, machine_ports(site)
    return Context(site, components, state_dir, *given, identity)


def watched_units() -> tuple[str, ...]:
    """Units that an installation may restart or stop."""
    return tuple(dict.fromkeys(unit for part in PARTS for unit in (*part.restarts, *part.stops)))
