"""The lab's desired state: the machines of a site, reduced to the properties of a disposable machine."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.site import Machine, Site, Sku
from pai_install.site.model import NVIDIA


@dataclass(frozen=True, slots=True)
class LabGpus:
    """The NVIDIA GPUs that a machine's SKU names, and stand-ins show: model as in the layout, and how many."""

    model: str
    count: int


@dataclass(frozen=True, slots=True)
class LabMachine:
    """One machine: host name, address in the lab's subnet, SSH port, GPUs.

    storage: its exported folder. images: its folder for containerd_data_root. Both empty for none. memory (bytes) and
    cpus: of its SKU. folders: of hostPath storages.
    """

    name: str
    address: IPv4Address
    port: int = 22
    gpus: LabGpus | None = None
    storage: str = ""
    images: str = ""
    memory: int = 0
    cpus: int = 0
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabSpec:
    """A lab. key_file: private SSH key for the machines. state_dir: the site's `.pai` folder.

    cluster_networks: addresses inside the site's cluster. Packets to them must not leave the lab.
    """

    machines: tuple[LabMachine, ...]
    user: str
    key_file: Path
    state_dir: Path
    cluster_networks: tuple[IPv4Network, ...] = ()

    @property
    def subnet(self) -> IPv4Network:
        """The /24 that all machines are in. Raises PaiError when they are spread over several."""
        subnets = {IPv4Network((machine.address, 24), strict=False) for machine in self.machines}
        if len(subnets) != 1:
            raise _unfit(f"the machines are in {len(subnets)} subnets", "give all of them addresses of one /24")
        return subnets.pop()

    @property
    def gateway(self) -> IPv4Address:
        """The box's own address in the subnet: its first one."""
        return next(self.subnet.hosts())

    @property
    def known_hosts(self) -> Path:
        """Where the machines' host keys are written."""
        return self.state_dir / "known_hosts"

    def machine(self, name: str) -> LabMachine:
        """The machine of that name. Raises PaiError when there is none."""
        for machine in self.machines:
            if machine.name == name:
                return machine
        names = ", ".join(machine.name for machine in self.machines)
        raise PaiError(
            f"cannot find machine {name!r} in this lab",
            code="lab-unknown-machine",
            remedy=f"choose one of: {names}",
            exit_code=ExitCode.USAGE,
        )


def checked(spec: LabSpec) -> LabSpec:
    """`spec` itself. Raises PaiError unless its addresses are private, unique and not the box's own."""
    if not spec.machines:
        raise _unfit("the site has no machines", "add machines to layout.yaml")
    addresses = [machine.address for machine in spec.machines]
    for machine in spec.machines:
        if not machine.address.is_private or machine.address in (
            spec.gateway,
            spec.subnet.network_address,
            spec.subnet.broadcast_address,
        ):
            raise _unfit(
                f"{machine.name} has the address {machine.address}",
                f"choose a private address other than {spec.gateway}, which this host takes",
            )
    if len(set(addresses)) != len(addresses) or len({machine.name for machine in spec.machines}) != len(addresses):
        raise _unfit("two machines share a name or an address", "make them unique in layout.yaml")
    return spec


def state_dir_of(site_dir: Path) -> Path:
    """Returns the folder with a site's state, which identifies a lab."""
    return site_dir.resolve() / ".pai"


def spec_of(site: Site) -> LabSpec:
    """The lab of a site: its machines that are not absent. Raises PaiError when they differ in user or key."""
    state_dir = state_dir_of(site.directory)
    machines = site.present_machines
    logins = {(machine.ssh.user, machine.ssh.key_file or state_dir / "lab_ssh_key") for machine in machines}
    if len(logins) > 1:
        raise _unfit("the machines differ in ssh user or key", "give all machines the same ssh settings")
    user, key_file = next(iter(logins), ("root", state_dir / "lab_ssh_key"))
    found = tuple(_lab_machine(site, one) for one in machines)
    networks = tuple(IPv4Network(word) for word in (site.settings.pod_cidr, site.settings.service_cidr))
    return checked(LabSpec(found, user, key_file, state_dir, networks))


def _lab_machine(site: Site, machine: Machine) -> LabMachine:
    sku = site.sku_of(machine)
    return LabMachine(
        machine.hostname,
        IPv4Address(machine.hostip),
        machine.ssh.port,
        _gpus_of(sku),
        storage=site.services.file_server.localpath if machine.storage else "",
        images=site.settings.containerd_data_root or "",
        memory=sku.mem_bytes,
        cpus=sku.vcore,
        folders=tuple(one.path for one in site.services.storages or () if one.type == "hostPath" and one.path),
    )


def _gpus_of(sku: Sku) -> LabGpus | None:
    return LabGpus(sku.device_model, sku.resources[NVIDIA]) if NVIDIA in sku.resources else None


def _unfit(what: str, remedy: str) -> PaiError:
    return PaiError(
        f"cannot create the lab: {what}", code="lab-site-unfit", remedy=remedy, exit_code=ExitCode.SITE_INVALID
    )
