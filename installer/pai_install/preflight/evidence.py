"""Evidence of a machine before its installation, as plain values. Any part may be missing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pai_install.checks.evidence import NotObservedError, peek
from pai_install.checks.verdict import Verdict
from pai_install.system.plain import one_line


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class MachineIdentity(_Part):
    """Names and ids. container: its kind, empty outside containers. user: login user. root: its privilege."""

    hostname: str
    machine_id: str = ""
    product_uuid: str = ""
    container: str = ""
    user: str = ""
    root: bool = False
    python: str = ""


class System(_Part):
    """Distribution, architecture, kernel."""

    id: str = ""
    version_id: str = ""
    name: str = ""
    architecture: str = ""
    kernel: str = ""
    pid_max: int | None = None
    threads_max: int | None = None
    systemd: bool = True


class PciDevice(_Part):
    """A display controller or accelerator. vendor and revision: hexadecimal."""

    address: str
    vendor: str
    revision: str = ""


class Hardware(_Part):
    """Memory, processors, accelerators and their driver."""

    memory_bytes: int | None = None
    cpus: int | None = None
    pci: tuple[PciDevice, ...] = ()
    nvidia_driver: str = ""
    nouveau: bool = False
    secure_boot: bool = False
    dkms_key_enrolled: bool = False
    headers: str = "installed"


class FileSystem(_Part):
    """The file system that `path` is or would be on. inodes: 0 where a file system has no fixed number."""

    path: str
    mount_point: str
    device: str = ""
    filesystem: str = ""
    read_only: bool = False
    noexec: bool = False
    project_quotas: bool = False
    total_bytes: int = 0
    free_bytes: int = 0
    inodes: int = 0
    inodes_free: int = 0


class Swap(_Part):
    """Active swap, and the fstab lines, units and zram settings that turn it on at boot."""

    active: tuple[str, ...] = ()
    fstab: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    zram: tuple[str, ...] = ()


class Timekeeping(_Part):
    """Running time services. chrony: its leap status. synchronised: None if unknown."""

    services: tuple[str, ...] = ()
    synchronised: bool | None = None
    chrony: str = ""


class KernelModules(_Part):
    """The available modules among the wanted ones. tree: modules of the running kernel are installed."""

    there: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    tree: bool = True
    other_trees: tuple[str, ...] = ()


class Cgroups(_Part):
    """Version 1 or 2, and the controllers."""

    version: int
    controllers: tuple[str, ...] = ()


class Docker(_Part):
    """The current Docker. daemon_json: why /etc/docker/daemon.json is unreadable. containers: running ones.

    program: of the daemon, or "". package: of the program, "" for none, None if unknown. cgroup_parent: of daemon.json.
    own_parents: container -> its own cgroup parent, if it is no slice.
    """

    running: bool = False
    snap: bool = False
    program: str = ""
    package: str | None = None
    daemon_json: str = ""
    data_root: str = ""
    version: str = ""
    containers: int | None = None
    live_restore: bool | None = None
    swarm: bool = False
    cgroup_parent: str = ""
    own_parents: Mapping[str, str] = Field(default_factory=dict)


class DeviceUse(_Part):
    """How many containers, pods apart, have an NVIDIA device open, and how many processes of any kind.

    None where only root may see.
    """

    gpu_containers: int | None = None
    gpu_processes: int | None = None


class Containerd(_Part):
    """A containerd that is there. config: why its file cannot be used. tasks: namespace -> running containers.

    old_shims: containers that containerd 2 cannot take over.
    """

    running: bool = False
    config: str = ""
    tasks: Mapping[str, int] = Field(default_factory=dict)
    old_shims: int = 0


class Kubernetes(_Part):
    """Remains of a cluster. marker: pai-install's own record. authority: digest of the cluster's certificate."""

    marker: Mapping[str, Any] = Field(default_factory=dict)
    roles: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    authority: str = ""
    etcd_entries: int = 0
    cni: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    kubelet_running: bool = False

    @property
    def installed(self) -> bool:
        """Whether pai-install has worked here before."""
        return bool(self.marker or self.roles)

    @property
    def member(self) -> bool:
        """Whether pai-install made this machine a node and finished."""
        return bool(self.marker.get("done")) and bool(self.files)


class Leftovers(_Part):
    """Remains of pods and their network. tables: of nftables, as FAMILY NAME. chains: in foreign tables.

    tables and chains are None without root permissions. folders: non-empty ones.
    """

    interfaces: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    tables: tuple[str, ...] | None = None
    chains: tuple[str, ...] | None = None


class Interface(_Part):
    """A network interface. addresses: IPv4 with prefix length."""

    name: str
    mac: str = ""
    mtu: int | None = None
    addresses: tuple[str, ...] = ()


class Route(_Part):
    """An IPv4 route."""

    network: str
    interface: str


class Listener(_Part):
    """A socket that takes connections or datagrams. program: "NAME (PID)", empty for the kernel's own."""

    protocol: str
    address: str = ""
    port: int
    program: str = ""

    @property
    def program_name(self) -> str:
        """The program without its process id."""
        return self.program.partition(" (")[0]


class Names(_Part):
    """files: resolver file -> its name servers."""

    files: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    resolved: bool = False


class Firewall(_Part):
    """Filters of incoming packets. chains: kernel chains with policy drop, None without root permissions."""

    ufw: bool = False
    firewalld: bool = False
    chains: tuple[str, ...] | None = ()


class PeerAnswer(_Part):
    """Responses of another machine. tcp: port -> open, refused, silent, rejected.

    small, large: datagrams of 64 bytes and of `size` bytes (the MTU) arrived. None: not tried.
    """

    tcp: Mapping[str, str] = Field(default_factory=dict)
    small: bool | None = None
    large: bool | None = None
    size: int = 0

    @property
    def reached(self) -> bool:
        """Whether the machine answered."""
        return bool(self.small) or any(answer in ("open", "refused") for answer in self.tcp.values())


class ExportAnswer(_Part):
    """The response of an NFS server about a folder. answer: served, silent, missing (or not for this
    machine), unclear.
    """

    answer: str
    why: str = ""


class EtcdDisk(_Part):
    """Small synchronous writes, in milliseconds. samples: 0 if the file system cannot be measured."""

    folder: str = ""
    samples: int = 0
    median_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


class Clock(_Part):
    """Seconds since the epoch. began, ended: machine's clock. asked, answered: controller host's clock,
    before and after.
    """

    began: float
    ended: float
    requested: float | None = None
    answered: float | None = None


class PreflightEvidence(_Part):
    """One machine. problems: part -> why it is missing. sudo_problem: why its evidence was collected without root.

    Reading a part that is missing raises NotObservedError: no check can take it for a good sign.
    """

    identity: MachineIdentity
    system: System
    hardware: Hardware
    mounts: tuple[FileSystem, ...]
    swap: Swap
    time: Timekeeping
    modules: KernelModules
    cgroups: Cgroups
    packages: Mapping[str, str]
    docker: Docker
    devices: DeviceUse
    containerd: Containerd
    kubernetes: Kubernetes
    leftovers: Leftovers
    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...]
    listeners: tuple[Listener, ...]
    names: Names
    firewall: Firewall
    proxies: Mapping[str, str]
    package_sources: Mapping[str, str]
    package_refusals: tuple[str, ...]
    servers: Mapping[str, str]
    peers: Mapping[str, PeerAnswer]
    exports: tuple[ExportAnswer, ...]
    etcd_disk: EtcdDisk
    clock: Clock
    problems: Mapping[str, str] = Field(default_factory=dict)
    sudo_problem: str = ""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name not in type(self).model_fields:
                return super().__getattr__(name)
            why = self.problems.get(name, "not collected")
            raise NotObservedError(Verdict.UNKNOWN, f"no evidence of {name.replace('_', ' ')}: {why}")

    def has(self, part: str) -> bool:
        """Whether a part was seen."""
        return part in self.model_fields_set

    @property
    def container(self) -> str:
        """Returns its kind of container. Empty for none and for unknown, the stricter case."""
        return peek(self).identity.container if self.has("identity") else ""

    @property
    def installed(self) -> bool:
        """Whether pai-install is known to have worked on the machine before."""
        return self.has("kubernetes") and peek(self).kubernetes.installed

    @property
    def member(self) -> bool:
        """Whether the machine is known to be a node that pai-install made."""
        return self.has("kubernetes") and peek(self).kubernetes.member


_PARTS = {
    name: TypeAdapter[Any](field.annotation or object)
    for name, field in PreflightEvidence.model_fields.items()
    if name not in ("problems", "sudo_problem")
}


def parse_evidence(raw: Mapping[str, Any]) -> PreflightEvidence:
    """Parses the evidence in a module's result. A malformed part is omitted, with the reason.

    Never raises: evidence of one machine must not stop the checks of the others.
    """
    raw_problems = raw.get("problems")
    problems = (
        {str(key): one_line(str(value)) for key, value in raw_problems.items()}
        if isinstance(raw_problems, Mapping)
        else {}
    )
    good: dict[str, Any] = {}
    for name, adapter in _PARTS.items():
        if raw.get(name) is None:
            continue
        try:
            good[name] = adapter.validate_python(raw[name])
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, (name, *first["loc"])))
            problems[name] = f"unexpected evidence: {where}: {first['msg']}"
    # Each part is validated above. Validating the whole again would refuse evidence in which a part is missing.
    return PreflightEvidence.model_construct(**good, problems=problems, sudo_problem="")
