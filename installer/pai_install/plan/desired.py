"""Site + components -> the variables of each role on each machine. Pure; the one place that knows the mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, collapse_addresses
from pathlib import Path

from pai_install.components.model import ComponentSet, FileArtifact
from pai_install.plan import rolevars as rv
from pai_install.site import Machine, Site

REGISTRY_HOST = "registry.pai.internal"
API_NAME = "kubernetes.pai.internal"
# where every machine's own proxy listens; the control planes themselves have port 6443
API_PORT = 7443
VXLAN_OVERHEAD = 50
INSTALL_TO = {
    "containerd": "/usr/local",
    "nvidia-container-toolkit": "/usr/local",
    "runc": "/usr/local/sbin/runc",
    "kubeadm": "/usr/local/bin/kubeadm",
    "kubelet": "/usr/local/bin/kubelet",
    "kubectl": "/usr/local/bin/kubectl",
    "cni-plugins": "/opt/cni/bin",
}
NODE_PROGRAMS = ("kubeadm", "kubelet", "kubectl", "cni-plugins")
# upstream names of the images that do not come from kubeadm's repository
UPSTREAM_REPOSITORIES = {
    "flannel": "docker.io/flannel",
    "busybox": "docker.io/library",
    "k8s-device-plugin": "nvcr.io/nvidia",
}
# Set where a SKU has NVIDIA devices: by it the device plugin finds its machines, and anybody else's pods may as well.
GPU_LABEL = "nvidia.com/gpu.present"


@dataclass(frozen=True)
class Desired:
    """What the machines of a site should be. state_dir: the site's state folder on the dev box."""

    site: Site
    components: ComponentSet
    state_dir: Path

    @cached_property
    def first(self) -> Machine:
        """The first control plane: it serves the components and makes the join tokens."""
        return self.site.control_planes[0]

    @property
    def store_address(self) -> str:
        """HOST:PORT of the component store."""
        return f"{self.first.hostip}:{self.site.settings.component_store_port}"

    @property
    def endpoint(self) -> str:
        """NAME:PORT that nodes reach the API by: each machine's own proxy, whatever control planes come and go."""
        host = API_NAME if self.site.settings.hosts_entries else "127.0.0.1"
        return f"{host}:{API_PORT}"

    def roles(self) -> dict[str, tuple[rv.RoleVars, ...]]:
        """Host -> the variables of every role that applies to it.

        Machines of one kind share the objects that hold what they have in common: a value with an entry for each
        machine of the site must not be made once more for each machine.
        """
        machines = self.site.present_machines
        examples = {self._kind(machine): machine for machine in machines}
        common = {kind: self._of_kind(machine) for kind, machine in examples.items()}
        return {machine.hostname: (*common[self._kind(machine)], *self._own(machine)) for machine in machines}

    def _kind(self, machine: Machine) -> tuple[bool, ...]:
        return machine.control_plane, machine.worker, self.site.sku_of(machine).has_nvidia

    def _of_kind(self, machine: Machine) -> tuple[rv.RoleVars, ...]:
        """What depends on nothing but the kind of the machine."""
        return self.base(machine), self.time(machine), self.runtime(machine), self.api_proxy(), self.verify(machine)

    def _own(self, machine: Machine) -> tuple[rv.RoleVars, ...]:
        """What is another on each machine."""
        found: list[rv.RoleVars] = [self.node(machine)]
        if machine.hostname == self.first.hostname:
            found += [self.store(), self.network()]
            if self.offers_gpus:
                found.append(self.device_plugin())
        if machine.control_plane:
            found.append(self.control_plane(machine))
        elif machine.worker:
            found.append(self.worker(machine))
        if self._labels(machine) or machine.taints:
            found.append(self.node_labels(machine))
        return tuple(found)

    def base(self, machine: Machine) -> rv.BaseVars:
        """Kernel, swap, names."""
        sysctl: dict[str, int | str] = {
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
        settings = self.site.settings
        if machine.worker:
            # keeps ports that a job asked for from being taken by an outgoing connection
            sysctl["net.ipv4.ip_local_port_range"] = (
                f"{settings.host_daemon_port_start} {settings.host_daemon_port_end}"
            )
        return rv.BaseVars(sysctl=sysctl, hosts=self._hosts())

    def _hosts(self) -> dict[str, tuple[str, ...]]:
        if not self.site.settings.hosts_entries:
            return {}
        machines = {machine.hostip: (machine.hostname,) for machine in self.site.present_machines}
        return {"127.0.0.1": (API_NAME,), **machines}

    def time(self, machine: Machine) -> rv.TimeSyncVars:
        """Control planes serve the time, workers take it from them."""
        upstreams = self.site.settings.ntp_servers
        if machine.control_plane:
            networks = [IPv4Network(other.hostip) for other in self.site.present_machines]
            allow = tuple(str(network) for network in collapse_addresses(networks))
            return rv.TimeSyncVars(servers=upstreams, allow=allow, exclusive=bool(upstreams))
        servers = tuple(master.hostip for master in self.site.control_planes)
        return rv.TimeSyncVars(servers=servers, allow=(), exclusive=True)

    def store(self) -> rv.ComponentStoreVars:
        """Everything the machines install, the registry program itself first."""
        registry = self.components.file("registry")
        return rv.ComponentStoreVars(
            port=self.site.settings.component_store_port,
            registry=rv.LocalProgram(path=str(registry.path), sha256=registry.sha256),
            files=tuple(
                rv.LocalFile(name=file.name, path=str(file.path), sha256=file.sha256) for file in self.components.files
            ),
            images=tuple(
                rv.LocalImage(
                    repository=image.repository,
                    tag=image.tag,
                    layout=str(image.layout),
                    manifest_digest=image.manifest_digest,
                )
                for image in self.components.images
            ),
        )

    def runtime(self, machine: Machine) -> rv.ContainerRuntimeVars:
        """containerd and Docker; the NVIDIA runtime only where the SKU has NVIDIA devices."""
        settings = self.site.settings
        nvidia = self.site.sku_of(machine).has_nvidia
        programs = ("containerd", "runc", "nvidia-container-toolkit") if nvidia else ("containerd", "runc")
        default = settings.container_default_runtime or ("nvidia" if self.site.openpai_style else "runc")
        return rv.ContainerRuntimeVars(
            artifacts=self._artifacts(programs),
            docker=settings.docker_packages,
            docker_data_root=str(settings.docker_data_root),
            log_max_size=settings.docker_log_max_size,
            log_max_file=settings.docker_log_max_file,
            live_restore=settings.docker_live_restore,
            docker_mirrors=settings.openpai_docker_registry_mirrors,
            insecure_registries=(*settings.openpai_docker_insecure_registries, self.store_address),
            registry_hosts=self._registry_hosts(),
            sandbox_image=self.image("pause"),
            nvidia=nvidia,
            default=default if nvidia else "runc",
            tunnel_overhead=VXLAN_OVERHEAD if settings.flannel_backend == "vxlan" else 0,
            proxy=self._proxy(),
        )

    def _registry_hosts(self) -> dict[str, tuple[str, ...]]:
        settings = self.site.settings
        hosts: dict[str, tuple[str, ...]] = {}
        if self.components.images:
            hosts[REGISTRY_HOST] = (f"http://{self.store_address}",)
        for registry in settings.openpai_docker_insecure_registries:
            hosts[registry] = (f"http://{registry}",)
        if settings.openpai_docker_registry_mirrors:
            hosts["docker.io"] = settings.openpai_docker_registry_mirrors
        return hosts

    def _proxy(self) -> dict[str, str]:
        settings = self.site.settings
        if not (settings.http_proxy or settings.https_proxy):
            return {}
        own = [machine.hostip for machine in self.site.present_machines]
        inside = ["127.0.0.1", "localhost", ".pai.internal", settings.pod_cidr, settings.service_cidr, *own]
        listed = [settings.no_proxy] if settings.no_proxy else []
        words = {"http": settings.http_proxy, "https": settings.https_proxy, "no_proxy": ",".join([*listed, *inside])}
        return {name: value for name, value in words.items() if value}

    def node(self, machine: Machine) -> rv.KubernetesNodeVars:
        """The programs of a node; the kubelet takes the address of the layout, also where a machine has several."""
        arguments = {"node-ip": machine.hostip, **self.site.settings.kubelet_custom_flags}
        return rv.KubernetesNodeVars(artifacts=self._artifacts(NODE_PROGRAMS), kubelet_args=arguments)

    def api_proxy(self) -> rv.ApiProxyVars:
        """All control planes."""
        servers = {master.hostname: master.hostip for master in self.site.control_planes}
        return rv.ApiProxyVars(servers=servers, port=API_PORT)

    def control_plane(self, machine: Machine) -> rv.ControlPlaneVars:
        """kubeadm's settings."""
        settings = self.site.settings
        sans = [API_NAME, *(word for master in self.site.control_planes for word in (master.hostname, master.hostip))]
        return rv.ControlPlaneVars(
            version=self.components.kubernetes_version,
            image_repository=REGISTRY_HOST if self.components.images else "registry.k8s.io",
            coredns_tag=self._tag("coredns"),
            etcd_tag=self._tag("etcd"),
            node_name=machine.hostname,
            address=machine.hostip,
            schedulable=machine.worker,
            endpoint=self.endpoint,
            sans=tuple(dict.fromkeys([*sans, "127.0.0.1", "localhost"])),
            pod_cidr=settings.pod_cidr,
            service_cidr=settings.service_cidr,
            node_prefix=settings.pod_cidr_node_prefix,
            dns_apart=len(self.site.present_machines) > 1,
            kubelet_config=dict(settings.kubelet_config),
            first=self.first.hostname,
            kubeconfig_dest=str(self.state_dir / "kubeconfig"),
        )

    def worker(self, machine: Machine) -> rv.WorkerVars:
        """What a join needs."""
        return rv.WorkerVars(
            node_name=machine.hostname,
            endpoint=self.endpoint,
            token_from=self.first.hostname,
        )

    def node_labels(self, machine: Machine) -> rv.NodeLabelsVars:
        """What the layout says of this node, and whether it has GPUs to offer."""
        return rv.NodeLabelsVars(
            name=machine.hostname, labels=self._labels(machine), taints=machine.taints, via=self.first.hostname
        )

    def _labels(self, machine: Machine) -> dict[str, str]:
        offers = self.site.settings.nvidia_device_plugin and self.site.sku_of(machine).has_nvidia
        return {**({GPU_LABEL: "true"} if offers else {}), **machine.labels}

    @property
    def has_nvidia(self) -> bool:
        """Whether any present machine has NVIDIA devices."""
        return any(self.site.sku_of(machine).has_nvidia for machine in self.site.present_machines)

    @property
    def offers_gpus(self) -> bool:
        """Whether the device plugin is to run anywhere."""
        return self.site.settings.nvidia_device_plugin and self.has_nvidia

    def network(self) -> rv.PodNetworkVars:
        """The pod network; RuntimeClass nvidia where a machine has the runtime."""
        return rv.PodNetworkVars(
            image=self.image("flannel"),
            cidr=self.site.settings.pod_cidr,
            backend=self.site.settings.flannel_backend,
            runtime_class=self.has_nvidia,
        )

    def device_plugin(self) -> rv.DevicePluginVars:
        """The images: the plugin's, and of what looks after the driver beside it."""
        return rv.DevicePluginVars(image=self.image("k8s-device-plugin"), watcher_image=self.image("busybox"))

    def verify(self, machine: Machine) -> rv.ClusterVerifyVars:
        """What must be true in the end."""
        nvidia = self.site.sku_of(machine).has_nvidia
        busybox = f"busybox:{self._tag('busybox')}"
        return rv.ClusterVerifyVars(
            version=self.components.kubernetes_version,
            nodes={other.hostname: other.worker for other in self.site.present_machines},
            image=self.image("busybox"),
            store_image=f"{self.store_address}/{busybox}" if self.components.images else busybox,
            runtimes=("runc", "nvidia") if nvidia else ("runc",),
            via=self.first.hostname,
        )

    def image(self, repository: str) -> str:
        """The full reference that machines pull an image by."""
        if self.components.images:
            return f"{REGISTRY_HOST}/{repository}:{self._tag(repository)}"
        return f"{UPSTREAM_REPOSITORIES.get(repository, 'registry.k8s.io')}/{repository}:{self._tag(repository)}"

    def _tag(self, repository: str) -> str:
        return self.components.image(repository).tag

    def _artifacts(self, names: Sequence[str]) -> tuple[rv.Artifact, ...]:
        return tuple(self._artifact(self.components.file(name)) for name in names)

    def _artifact(self, file: FileArtifact) -> rv.Artifact:
        url = f"http://{self.store_address}/v2/files/{file.name}/blobs/sha256:{file.sha256}"
        dest = INSTALL_TO[file.name]
        return rv.Artifact(name=file.name, version=file.version, url=url, sha256=file.sha256, kind=file.kind, dest=dest)
