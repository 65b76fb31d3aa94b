"""The facts of a machine: the one type of what pai_facts returns. Pure."""

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
    """The record of a role on a machine. settings: variable -> digest; drift: one sentence each. notes: word -> text.

    readers: units that restart when the role changes a file of theirs; restarts: those whose files have drifted.
    """

    model_config = ConfigDict(frozen=True)
    settings: Mapping[Text, Text] = Field(default_factory=dict)
    drift: tuple[Text, ...] = ()
    notes: Mapping[Text, Text] = Field(default_factory=dict)
    readers: tuple[Text, ...] = ()
    restarts: tuple[Text, ...] = ()


class Membership(BaseModel):
    """Whether the machine is a control plane, and a node. joined: an init or join came to its end here.

    node_name: the name that it joined under, from its kubelet's certificate; empty when it has none.
    settings: what a control plane runs with: pod_cidr, service_cidr, node_prefix, address, version, etcd,
    endpoint; those that could be read.
    """

    model_config = ConfigDict(frozen=True)
    control_plane: bool = False
    node: bool = False
    joined: bool = False
    node_name: NoName = ""
    settings: Mapping[Text, Text] = Field(default_factory=dict)


class Certificate(BaseModel):
    """A certificate file. expires: seconds since 1970; None where it could not be read, `problem` says why.

    unread: whether the program that reads it started before it was written.
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
    """kind: what systemd-detect-virt says; container: whether the machine shares the kernel of another one."""

    model_config = ConfigDict(frozen=True)
    kind: Text = "none"
    container: bool = False


class NodeFacts(BaseModel):
    """A node; the fields have the names of cluster.model.Node."""

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
    """A pod; the fields have the names of cluster.model.Pod."""

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
    """What an installation could disturb.

    gpu_containers: containers of Docker that have an NVIDIA device open. dropped_forwarding: chains that drop what is
    forwarded. cni_files: configurations of pod networks in /etc/cni/net.d.
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
    """One machine, as module pai_facts saw it. Plans read it here, roles and filters as `ansible_facts.pai`.

    cgroup_driver: systemd or cgroupfs, for the kubelet, containerd and Docker. sys_resource: whether root has that
    capability. bridge_netfilter: whether the kernel filters bridged packets. nfsd: whether it can serve NFS for this
    machine. mtu: bytes, of the default route.
    mtus: IPv4 address -> MTU of the interface that has it.
    services: those that run, of the ones that an installation may restart or stop. resolved: whether systemd-resolved
    runs. programs, images: name -> version or tag of what we put there. cluster: on a control plane only.
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
    """The facts in a module result. Raises ValueError, in words for people, when they cannot be used.

    control_plane: whether the site says that the machine is one; of the cluster only those are asked.
    """
    held = result.get("ansible_facts")
    facts = held.get("pai") if isinstance(held, Mapping) else None
    if not isinstance(facts, Mapping):
        raise ValueError("the machine answered without facts")  # noqa: TRY004 - what it says is wrong, not its type
    try:
        return Observed.model_validate({**facts, **({} if control_plane else {"cluster": None})})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise ValueError(f"the machine's facts cannot be used: {where}: {first['msg']}") from None


def parse_machines(
    results: Mapping[str, Mapping[str, Any]], control_planes: Collection[str]
) -> tuple[dict[str, Observed], dict[str, str]]:
    """Machine -> its facts, and machine -> why they cannot be used: what one says stops none of the others."""
    machines: dict[str, Observed] = {}
    unusable: dict[str, str] = {}
    for host, result in results.items():
        try:
            machines[host] = parse_observed(result, control_plane=host in control_planes)
        except ValueError as error:
            unusable[host] = str(error)
    return machines, unusable
