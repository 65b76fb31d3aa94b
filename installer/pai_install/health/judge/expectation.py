"""The site's description of its machines, in terms of the health checks."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.site.model import Site


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected hardware of a machine. device: device type of its SKU ("nvidia.com/gpu"), '' for CPU only.

    model: as in the site. count: GPUs. mig: MIG instances on all GPUs. None: not in the site.
    """

    sku: str = ""
    device: str = ""
    model: str = ""
    count: int | None = None
    ram_bytes: int | None = None
    cpus: int | None = None
    control_plane: bool = False
    worker: bool = True
    mig: int | None = None

    @property
    def node(self) -> bool:
        """Whether it is a node of the cluster."""
        return self.control_plane or self.worker

    @property
    def nvidia(self) -> bool:
        """Whether the SKU names NVIDIA GPUs."""
        return self.device.startswith("nvidia.com/")


def expectations(site: Site) -> dict[str, Expectation]:
    """Machine -> expectation, for the present machines."""
    found = {}
    for machine in site.present_machines:
        sku = site.sku_of(machine)
        device = sku.device
        mig = device is not None and "/mig" in device.type
        found[machine.hostname] = Expectation(
            sku=sku.name,
            device=device.type if device else "",
            model=device.model if device else "",
            count=device.count if device and not mig else None,
            ram_bytes=sku.mem_bytes,
            cpus=sku.vcore,
            control_plane=machine.control_plane,
            worker=machine.worker,
            mig=device.count if device and mig else None,
        )
    return found
