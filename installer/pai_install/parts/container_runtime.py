"""containerd, Docker on it, and the NVIDIA runtime where a SKU has NVIDIA devices."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Annotated, Literal

from pydantic import Field

from pai_install.parts.context import Artifact, Context
from pai_install.parts.part import Part, RoleVariables, Space, by_kind, restarts
from pai_install.registry.model import STORE_HOST
from pai_install.site import Machine, Site
from pai_install.site.settings import CONTAINERD_ROOT

# Headers around each packet of a pod: Ethernet 14, IPv4 20, UDP 8, VXLAN 8 bytes.
VXLAN_OVERHEAD = 50
_CONTAINERD = restarts("containerd.service")
_DOCKER = restarts("docker.service")
_BOTH = restarts("containerd.service", "docker.service")
_PROGRAMS = (("containerd", "/usr/local"), ("runc", "/usr/local/sbin/runc"))
_NVIDIA_PROGRAMS = (*_PROGRAMS, ("nvidia-container-toolkit", "/usr/local"))


class ContainerRuntimeVariables(RoleVariables):
    """containerd, optionally Docker, the NVIDIA runtime. store: HOST:PORT for images named after store_host."""

    role = "container_runtime"
    artifacts: tuple[Artifact, ...]
    docker: Literal["distribution", "docker-ce", "none"]
    docker_data_root: Annotated[str, _DOCKER]
    # empty: where it is
    containerd_data_root: Annotated[str, _CONTAINERD]
    log_max_size: Annotated[str, _DOCKER]
    log_max_file: Annotated[int, _DOCKER]
    live_restore: Annotated[bool, _DOCKER]
    # containerd and Docker read whom they trust, and what is asked in a registry's place, for every pull
    store: Annotated[str, restarts()]
    store_host: Annotated[str, restarts()]
    store_ca: Annotated[str, restarts()]
    sandbox_image: Annotated[str, _CONTAINERD]
    nvidia: Annotated[bool, _BOTH]
    default: Annotated[Literal["runc", "nvidia"], _BOTH]
    # the runtime reads its configuration for every container
    gpu_visible_to_all: Annotated[bool, restarts()]
    tunnel_overhead: Annotated[int, _CONTAINERD]
    proxy: Annotated[dict[str, str], _BOTH] = Field(default_factory=dict)


class ContainerRuntime(Part):
    """Every machine."""

    name = "container_runtime"
    phase = "runtime"
    model = ContainerRuntimeVariables
    after = ("component_store",)
    restarts = ("containerd.service", "docker.service")

    def variables(self, context: Context, machine: Machine) -> ContainerRuntimeVariables:
        """OpenPAI's services expect nvidia as the default runtime of GPU machines."""
        settings = context.site.settings
        nvidia = context.site.sku_of(machine).has_nvidia
        default = settings.container_default_runtime or ("nvidia" if context.site.openpai_style else "runc")
        return ContainerRuntimeVariables(
            artifacts=context.artifacts(_NVIDIA_PROGRAMS if nvidia else _PROGRAMS),
            docker=settings.docker_packages,
            docker_data_root=str(settings.docker_data_root),
            containerd_data_root=settings.containerd_data_root or "",
            log_max_size=settings.docker_log_max_size,
            log_max_file=settings.docker_log_max_file,
            live_restore=settings.docker_live_restore,
            store=context.store_address,
            store_host=STORE_HOST,
            store_ca=context.authorities,
            sandbox_image=context.tagged("pause"),
            nvidia=nvidia,
            default=default if nvidia else "runc",
            gpu_visible_to_all=settings.gpu_visible_to_all_containers,
            # VXLAN adds a header to each packet. The packets of pods must be smaller by it to pass the machines'
            # network.
            tunnel_overhead=VXLAN_OVERHEAD if settings.flannel_backend == "vxlan" else 0,
            proxy=proxy_of(context.site),
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """Nothing of the machine itself matters."""
        return by_kind(site, machine)

    def components(self, site: Site) -> frozenset[str]:
        """NVIDIA's toolkit only where a machine has NVIDIA devices."""
        needed = frozenset({"containerd", "runc", "pause"})
        return needed | {"nvidia-container-toolkit"} if site.has_nvidia else needed

    def images(self, site: Site, machine: Machine) -> tuple[str, ...]:
        """Every pod begins with one of the sandbox."""
        del site, machine
        return ("pause",)

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """Images and containers of both."""
        del machine
        settings = site.settings
        images = settings.containerd_data_root or CONTAINERD_ROOT
        return {images: Space(5, 40), str(settings.docker_data_root): Space(2, 20)}


def proxy_of(site: Site) -> dict[str, str]:
    """The site's proxy towards the outside: http, https, no_proxy.

    Workers' addresses are not among those without proxy: no part pulls from them, and they come and go.
    """
    settings = site.settings
    if not (settings.http_proxy or settings.https_proxy):
        return {}
    # Programs on the machines read the proxy variables as well. Traffic inside the cluster must not leave through it.
    masters = [machine.hostip for machine in site.control_planes]
    inside = ["127.0.0.1", "localhost", ".pai.internal", settings.pod_cidr, settings.service_cidr, *masters]
    listed = [settings.no_proxy] if settings.no_proxy else []
    words = {"http": settings.http_proxy, "https": settings.https_proxy, "no_proxy": ",".join([*listed, *inside])}
    return {name: value for name, value in words.items() if value}
