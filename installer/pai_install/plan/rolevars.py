"""The variables of every role, one typed model each; a contract test holds them against argument_specs."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field


class RoleVars(BaseModel):
    """Variables of one role. Field names are the role's variables without the role's name in front."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: ClassVar[str]

    def variables(self) -> dict[str, Any]:
        """As Ansible is given them: full names, plain values."""
        return {f"{self.role}_{name}": value for name, value in self.model_dump(mode="json").items()}


class Artifact(BaseModel):
    """A program in the component store and where a machine installs it."""

    model_config = ConfigDict(frozen=True)
    name: str
    version: str
    url: str
    sha256: str
    kind: Literal["binary", "tar.gz"]
    dest: str


class LocalFile(BaseModel):
    """A file on the dev box."""

    model_config = ConfigDict(frozen=True)
    name: str
    path: str
    sha256: str


class LocalImage(BaseModel):
    """An OCI image layout on the dev box."""

    model_config = ConfigDict(frozen=True)
    repository: str
    tag: str
    layout: str
    manifest_digest: str


class LocalProgram(BaseModel):
    """A program on the dev box."""

    model_config = ConfigDict(frozen=True)
    path: str
    sha256: str


class BaseVars(RoleVars):
    """The operating system under Kubernetes."""

    role = "base"
    kernel_modules: tuple[str, ...] = ("overlay", "br_netfilter", "nf_conntrack", "vxlan")
    sysctl: dict[str, int | str]
    hosts: dict[str, tuple[str, ...]]


class TimeSyncVars(RoleVars):
    """One clock. servers: where the time comes from; allow: networks (CIDR) it is served to."""

    role = "time_sync"
    servers: tuple[str, ...]
    allow: tuple[str, ...]
    exclusive: bool


class ComponentStoreVars(RoleVars):
    """What the first control plane serves."""

    role = "component_store"
    port: int
    registry: LocalProgram
    files: tuple[LocalFile, ...]
    images: tuple[LocalImage, ...]


class ContainerRuntimeVars(RoleVars):
    """containerd, Docker on it, the NVIDIA runtime."""

    role = "container_runtime"
    artifacts: tuple[Artifact, ...]
    docker: Literal["distribution", "docker-ce", "none"]
    docker_data_root: str
    log_max_size: str
    log_max_file: int
    live_restore: bool
    docker_mirrors: tuple[str, ...]
    insecure_registries: tuple[str, ...]
    registry_hosts: dict[str, tuple[str, ...]]
    sandbox_image: str
    nvidia: bool
    default: Literal["runc", "nvidia"]
    tunnel_overhead: int
    proxy: dict[str, str] = Field(default_factory=dict)


class KubernetesNodeVars(RoleVars):
    """The programs of every node."""

    role = "kubernetes_node"
    artifacts: tuple[Artifact, ...]
    kubelet_args: dict[str, str]


class ApiProxyVars(RoleVars):
    """The API of all control planes at one local address."""

    role = "api_proxy"
    servers: dict[str, str]
    port: int


class ControlPlaneVars(RoleVars):
    """A control plane. first: the one that the others join."""

    role = "control_plane"
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
    kubelet_config: dict[str, Any]
    first: str
    kubeconfig_dest: str


class WorkerVars(RoleVars):
    """A worker node."""

    role = "worker"
    node_name: str
    endpoint: str
    token_from: str


class NodeLabelsVars(RoleVars):
    """Labels and taints of a node; only machines that have any are given these. via: the control plane to ask."""

    role = "node_labels"
    name: str
    labels: dict[str, str]
    taints: tuple[str, ...]
    via: str


class PodNetworkVars(RoleVars):
    """Packets between the pods of different machines."""

    role = "pod_network"
    image: str
    cidr: str
    backend: Literal["vxlan", "host-gw"]
    runtime_class: bool


class DevicePluginVars(RoleVars):
    """Kubernetes knows the machines' NVIDIA devices; only given where the plugin is to run."""

    role = "device_plugin"
    offered: bool = True
    image: str
    watcher_image: str


class ClusterVerifyVars(RoleVars):
    """What the last phase proves. nodes: node name -> whether jobs may run there; via: the control plane to ask."""

    role = "cluster_verify"
    version: str
    nodes: dict[str, bool]
    image: str
    store_image: str
    runtimes: tuple[str, ...]
    via: str


ROLE_MODELS: tuple[type[RoleVars], ...] = (
    BaseVars,
    TimeSyncVars,
    ComponentStoreVars,
    ContainerRuntimeVars,
    KubernetesNodeVars,
    ApiProxyVars,
    ControlPlaneVars,
    WorkerVars,
    NodeLabelsVars,
    PodNetworkVars,
    DevicePluginVars,
    ClusterVerifyVars,
)
