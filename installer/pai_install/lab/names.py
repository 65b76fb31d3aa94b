"""Names of everything the lab makes on the controller host, derived from addresses so that labs never collide."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from pai_install.lab.spec import LabMachine, LabSpec

LABS_DIR = Path("/var/lib/pai-install/lab")
RECORD_NAME = "lab.json"
# These hold overlay mounts of their own inside a machine, and overlay on overlay is refused.
_DATA_DIRS = ("docker", "containerd", "kubelet", "etcd")


def data_folders(machine: LabMachine) -> dict[str, str]:
    """Returns folder below `MachineNames.data` -> mount point in the machine, on a disk's file system instead of its
    overlay.

    It includes the exported folders, because no NFS server exports an overlay.
    """
    named = {"storage": machine.storage, "images": machine.images}
    return {
        **{name: f"/var/lib/{name}" for name in _DATA_DIRS},
        **{name: path for name, path in named.items() if path},
    }


@dataclass(frozen=True, slots=True)
class LabNames:
    """Names of one lab. Interface names have at most 15 characters, the kernel's limit."""

    lab: str
    bridge: str
    nft_table: str
    folder: Path

    @property
    def record(self) -> Path:
        """Returns the file that records the objects of the lab."""
        return self.folder / RECORD_NAME


@dataclass(frozen=True, slots=True)
class MachineNames:
    """Names of one machine's things on the box."""

    netns: str
    veth: str
    nspawn: str
    folder: Path

    @property
    def root(self) -> Path:
        """Where the machine's file system is mounted on the box."""
        return self.folder / "root"

    @property
    def base(self) -> Path:
        """A link to the base image that the machine was made with."""
        return self.folder / "base"

    @property
    def image(self) -> Path:
        """The machine's disk: a sparse file with a file system in it."""
        return self.folder / "disk.img"

    @property
    def disk(self) -> Path:
        """Returns the mount point of that disk on the host, or a plain folder on a host without loop devices."""
        return self.folder / "disk"

    @property
    def upper(self) -> Path:
        """Returns the folder with the machine's changes to the base image."""
        return self.disk / "upper"

    @property
    def work(self) -> Path:
        """The overlay's own scratch folder."""
        return self.disk / "work"

    @property
    def data(self) -> Path:
        """Holds the folders bound to /var/lib/{docker,containerd,kubelet,etcd}."""
        return self.disk / "data"

    @property
    def export(self) -> Path:
        """Returns the mount point for sockets of the machine, which nspawn of systemd 256 and newer creates."""
        return Path("/run/systemd/nspawn/unix-export") / self.nspawn

    @property
    def console(self) -> Path:
        """Returns the file with the machine's console output."""
        return self.folder / "console.log"


def lab_names(spec: LabSpec) -> LabNames:
    """Names for the lab of `spec`."""
    subnet = spec.subnet.network_address
    code = _hex(subnet)
    lab = str(subnet).replace(".", "-")
    return LabNames(lab=lab, bridge=f"pb-{code}", nft_table=f"pai_lab_{code}", folder=LABS_DIR / lab)


def machine_names(spec: LabSpec, machine: LabMachine) -> MachineNames:
    """Names for one machine of that lab."""
    code = _hex(machine.address)
    return MachineNames(
        netns=f"pai-{machine.address}",
        veth=f"pv-{code}",
        nspawn=f"pai-{code}",
        folder=lab_names(spec).folder / machine.name,
    )


def _hex(address: IPv4Address) -> str:
    return f"{int(address):08x}"
