"""The facts of a machine: the type of pai_facts' result. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pai_install.system.plain import one_line

# one line of a machine's own words; what it is compared with or shown as never needs more
Text = Annotated[str, Field(max_length=4096), AfterValidator(one_line)]
# names that stand in commands which people are told to run
Name = Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
NoName = Annotated[str, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")]
# seconds since 1970 up to the year 9999
Date = Annotated[int, Field(ge=0, lt=253_402_300_800)]
Count = Annotated[int, Field(ge=0, lt=1 << 31)]


class RoleRecord(BaseModel):
    """The record of a role on a machine. settings: variable -> digest. drift: one sentence each. notes: name -> text.

    readers: units that restart when the role changes one of their files. restarts: units with drifted files.
    """

    model_config = ConfigDict(frozen=True)
    settings: Mapping[Text, Text] = Field(default_factory=dict)
    drift: tuple[Text, ...] = ()
    notes: Mapping[Text, Text] = Field(default_factory=dict)
    readers: tuple[Text, ...] = ()
    restarts: tuple[Text, ...] = ()


class Membership(BaseModel):
    """Memberships as control plane and node. joined: an init or join has completed here.

    node_name: its name in its kubelet's certificate, or "". settings: current settings of a control-plane node:
    pod_cidr, service_cidr, node_prefix, address, version, etcd, endpoint, if readable.
    """

    model_config = ConfigDict(frozen=True)
    control_plane: bool = False
    node: bool = False
    joined: bool = False
    node_name: NoName = ""
    settings: Mapping[Text, Text] = Field(default_factory=dict)


class Certificate(BaseModel):
    """A certificate file. expires: seconds since 1970, None if unreadable (`problem`: cause).

    unread: its program started before the file was written.
    """

    model_config = ConfigDict(frozen=True)
    path: Text
    expires: Date | None = None
    problem: Text = ""
    unread: bool = False


class DockerFacts(BaseModel):
    """Docker as it is in use. version: of dockerd, empty without one. containers: how many run.

    data_root, log_driver: of daemon.json, or Docker's default. own_images: whether it keeps images out of containerd.
    repository: the file that names Docker's own package repository, empty where none does.
    """

    model_config = ConfigDict(frozen=True)
    version: Text = ""
    containers: Count = 0
    data_root: Text = ""
    log_driver: Text = ""
    own_images: bool = False
    repository: Text = ""


class Distribution(BaseModel):
    """Of /etc/os-release."""

    model_config = ConfigDict(frozen=True)
    id: Text = ""
    version_id: Text = ""
    version_codename: Text = ""


class Virtualization(BaseModel):
    """kind: output of systemd-detect-virt. container: the machine shares the kernel of another one."""

    model_config = ConfigDict(frozen=True)
    kind: Text = "none"
    container: bool = False


class NodeFacts(BaseModel):
    """A node. The fields have the names of kube.model.Node."""

    model_config = ConfigDict(frozen=True)
    name: Name
    ready: bool | None = None
    cordoned: bool | None = None
    pressure: tuple[Text, ...] = ()
    why: Text = ""
    version: Text = ""
    runtime: Text = ""
    machine_id: Text = ""
    address: Text = ""
    sku: Text = ""


class PodFacts(BaseModel):
    """A pod. The fields have the names of kube.model.Pod."""

    model_config = ConfigDict(frozen=True)
    name: Name
    namespace: NoName = ""
    node: NoName = ""
    phase: Text = ""
    ready: bool | None = None
    restarts: Count = 0
    why: Text = ""


class ClusterFacts(BaseModel):
    """The cluster as a control plane sees it. error: why the API did not answer, "" when it did."""

    model_config = ConfigDict(frozen=True)
    error: Text = ""
    nodes: tuple[NodeFacts, ...] = ()
    pods: tuple[PodFacts, ...] = ()


class InUse(BaseModel):
    """Uses that an installation could disturb.

    gpu_containers: Docker containers with an open NVIDIA device. dropped_forwarding: chains that drop forwarded
    packets. cni_files: configurations of pod networks in /etc/cni/net.d.
    """

    model_config = ConfigDict(frozen=True)
    docker_stops_with_containerd: bool = False
    gpu_containers: Count = 0
    dropped_forwarding: tuple[Text, ...] = ()
    cni_files: tuple[Text, ...] = ()


class NvidiaFacts(BaseModel):
    """driver: version of the loaded one, empty without. nouveau: drives the devices instead. switches: NVSwitches."""

    model_config = ConfigDict(frozen=True)
    driver: Text = ""
    nouveau: bool = False
    switches: Count = 0


class Observed(BaseModel):
    """One machine as observed by module pai_facts. Plans read it here, roles and filters as `ansible_facts.pai`.

    cgroup_driver: systemd or cgroupfs, for the kubelet, containerd, and Docker. sys_resource: root has that capability.
    bridge_netfilter: the kernel filters bridged packets. nfsd: it can serve NFS for this machine. mtu: bytes, of the
    default route.
    mtus: IPv4 address -> MTU of its interface.
    services: running services that an installation may restart or stop. resolved: systemd-resolved runs. programs,
    images: name -> installed version or tag of our components. cluster: on a control-plane node only.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    hostname: Text
    machine_id: Text = ""
    os: Distribution = Distribution()
    kernel: Text = ""
    architecture: Text = ""
    virtualization: Virtualization = Virtualization()
    cgroup_version: Count = 2
    cgroup_driver: Text = "systemd"
    sys_resource: bool = True
    bridge_netfilter: bool = True
    nfsd: bool = False
    mtu: Count = 1500
    mtus: Mapping[Text, Count] = Field(default_factory=dict)
    kubernetes: Membership = Membership()
    certificates: tuple[Certificate, ...] = ()
    services: tuple[Text, ...] = ()
    resolved: bool = False
    docker: DockerFacts = DockerFacts()
    in_use: InUse = InUse()
    nvidia: NvidiaFacts = NvidiaFacts()
    roles: Mapping[Text, RoleRecord] = Field(default_factory=dict)
    programs: Mapping[Text, Text] = Field(default_factory=dict)
    images: Mapping[Text, Text] = Field(default_factory=dict)
    cluster: ClusterFacts | None = None


def parse_observed(result: Mapping[str, Any], *, control_plane: bool = True) -> Observed:
    """Parses the facts in a module result. Raises ValueError with a readable text for invalid facts.

    control_plane: the machine is one in the site. Only these read the cluster.
    """
    held = result.get("ansible_facts")
    facts = held.get("pai") if isinstance(held, Mapping) else None
    if not isinstance(facts, Mapping):
        raise ValueError("the machine answered without facts")  # noqa: TRY004 - what it says is wrong, not its type
    try:
        # A worker must not speak for the cluster.
        return Observed.model_validate({**facts, **({} if control_plane else {"cluster": None})})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise ValueError(f"the machine's facts cannot be used: {where}: {first['msg']}") from None


def parse_machines(
    results: Mapping[str, Mapping[str, Any]], control_planes: Collection[str]
) -> tuple[dict[str, Observed], dict[str, str]]:
    """Returns machine -> facts, and machine -> why they are invalid. Invalid facts of one machine do not
    affect others.
    """
    machines: dict[str, Observed] = {}
    unusable: dict[str, str] = {}
    for host, result in results.items():
        try:
            machines[host] = parse_observed(result, control_plane=host in control_planes)
        except ValueError as error:
            unusable[host] = str(error)
    return machines, unusable
