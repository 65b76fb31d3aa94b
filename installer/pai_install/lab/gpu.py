"""Simulated data of GPUs of a model: nvidia-smi outputs, the PCI bus, the driver's files."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from pai_install.lab.spec import LabMachine

DRIVER = "580.95.05"
STAND_IN_DIR = Path(__file__).parent / "stand_in"
_FIRST_BUS = 0x10
_HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n<nvidia_smi_log>\n'


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model of GPU. memory_mib, watt: as its data sheet says. links: number and GB/s of its NVLinks."""

    name: str
    generation: str
    device_id: str
    memory_mib: int
    watt: int
    gen: int
    links: tuple[int, float] = (0, 0.0)

    @property
    def remaps_rows(self) -> bool:
        """Returns whether it remaps rows of its memory. Older GPUs retire pages."""
        return self.generation != "Turing"

    @property
    def switched(self) -> bool:
        """Whether it registers with an NVSwitch fabric."""
        return self.generation in {"Hopper", "Blackwell"} and bool(self.links[0])


PRODUCTS = (
    GpuModel("NVIDIA A100-SXM4-80GB", "Ampere", "20b2", 81920, 400, 4, (12, 25.0)),
    GpuModel("NVIDIA H100 80GB HBM3", "Hopper", "2330", 81559, 700, 5, (18, 26.562)),
    GpuModel("NVIDIA H200", "Hopper", "2335", 143771, 700, 5, (18, 26.562)),
    GpuModel("NVIDIA B200", "Blackwell", "2901", 183359, 1000, 5, (18, 53.125)),
    GpuModel("NVIDIA L40S", "Ada", "26b9", 46068, 350, 4),
    GpuModel("Tesla T4", "Turing", "1eb8", 15360, 70, 3),
)


@dataclass(frozen=True, slots=True)
class StandInGpu:
    """One GPU that is not there."""

    index: int
    product: GpuModel
    uuid: str

    @property
    def name(self) -> str:
        """Returns its product name."""
        return f"{self.product.name} (stand-in)"

    @property
    def bus_id(self) -> str:
        """Its address on the PCI bus."""
        return f"0000:{_FIRST_BUS + self.index:02x}:00.0"


def product_of(model: str) -> GpuModel:
    """Returns the product with the distinctive word of the layout's model, or a generic product of that name."""
    word = model.lower().replace("nvidia", "").replace("tesla", "").strip(" -_").split("-")[0].split("_")[0]
    for product in PRODUCTS:
        if word and word in product.name.lower():
            return product
    return GpuModel(f"NVIDIA {model}", "Ampere", "20b2", 40960, 300, 4)


def gpus_of(machine: LabMachine) -> tuple[StandInGpu, ...]:
    """Returns the simulated GPUs of a machine. Their UUIDs are unique and stable."""
    if machine.gpus is None:
        return ()
    product = product_of(machine.gpus.model)
    names = (f"stand-in GPU {index} of {machine.name}" for index in range(machine.gpus.count))
    return tuple(
        StandInGpu(index, product, f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, name)}") for index, name in enumerate(names)
    )


@cache
def _template() -> Template:
    return Template((STAND_IN_DIR / "gpu.xml").read_text())


def gpu_xml(gpu: StandInGpu) -> str:
    """The <gpu> element of a healthy one."""
    product = gpu.product
    remaps, switched = product.remaps_rows, product.switched
    values = {
        "index": gpu.index,
        "product": gpu.name,
        "generation": product.generation,
        "uuid": gpu.uuid,
        "bus_id_upper": gpu.bus_id.upper(),
        "device_id_upper": f"{product.device_id}10de".upper(),
        "gen": product.gen,
        "memory": product.memory_mib,
        "watt": product.watt,
        "gsp": DRIVER,
        "mig": "Disabled" if product.generation in {"Ampere", "Hopper", "Blackwell"} else "N/A",
        "retired": "N/A" if remaps else "0",
        "retirement_pending": "N/A" if remaps else "No",
        "remapped": "0" if remaps else "N/A",
        "remap_word": "No" if remaps else "N/A",
        "banks": "640 bank(s)" if remaps else "N/A",
        "no_banks": "0 bank(s)" if remaps else "N/A",
        "fabric_state": "Completed" if switched else "N/A",
        "fabric_status": "Success" if switched else "N/A",
        "fabric_health": "Healthy" if switched else "N/A",
    }
    return _template().substitute(values)


def smi_xml(elements: Iterable[str]) -> str:
    """The document that nvidia-smi -q -x prints around <gpu> elements."""
    body = list(elements)
    head = f"\t<driver_version>{DRIVER}</driver_version>\n\t<cuda_version>13.0</cuda_version>\n"
    return f"{_HEAD}{head}\t<attached_gpus>{len(body)}</attached_gpus>\n{''.join(body)}</nvidia_smi_log>\n"


def gpu_list(gpus: Iterable[StandInGpu]) -> str:
    """Returns the output of nvidia-smi -L."""
    return "".join(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n" for gpu in gpus)


def use_table(gpus: Iterable[StandInGpu], percent: Iterable[int]) -> str:
    """Returns the output of nvidia-smi --query-gpu=index,uuid,utilization.gpu --format=csv,noheader,nounits."""
    return "".join(f"{gpu.index}, {gpu.uuid}, {busy}\n" for gpu, busy in zip(gpus, percent, strict=True))


def metrics_table(gpus: Iterable[StandInGpu]) -> str:
    """Returns a line for each GPU: its number, and the values behind utilization in the query of the GPU meter."""
    values = "35, [N/A], 60.00, 210, 1215, P0, 0x0000000000000001, 0, 0, 4, 16, 16"
    return "".join(
        f"{gpu.index}, 0000{gpu.bus_id.upper()}, 0, {gpu.product.memory_mib}, {gpu.product.memory_mib}, {values}\n"
        for gpu in gpus
    )


def rows_table(gpus: Iterable[StandInGpu]) -> str:
    """Returns the output of nvidia-smi --query-remapped-rows of the GPU meter."""
    return "".join(f"{gpu.uuid}, 0, 0, No, No\n" for gpu in gpus)


def nvlink_status(gpus: Iterable[StandInGpu]) -> str:
    """Returns the output of nvidia-smi nvlink -s."""
    return _per_link(gpus, "\t Link {link}: {speed:g} GB/s\n")


def nvlink_errors(gpus: Iterable[StandInGpu]) -> str:
    """Returns the output of nvidia-smi nvlink -e."""
    counters = ("Replay Errors", "Recovery Errors", "CRC Errors")
    return _per_link(gpus, "".join(f"\t Link {{link}}: {counter}: 0\n" for counter in counters))


def _per_link(gpus: Iterable[StandInGpu], line: str) -> str:
    text = ""
    for gpu in gpus:
        count, speed = gpu.product.links
        text += gpu_list([gpu]) + "".join(line.format(link=link, speed=speed) for link in range(count))
    return text


def peer_matrix(gpus: tuple[StandInGpu, ...]) -> str:
    """Returns the output of nvidia-smi topo -p2p n."""
    head = "".join(f"\tGPU{gpu.index}" for gpu in gpus) + "\n"
    rows = ("\t".join("X" if row == column else "OK" for column in gpus) for row in gpus)
    return head + "".join(f" GPU{gpu.index}\t{row}\n" for gpu, row in zip(gpus, rows, strict=True))


def bus_list(gpus: Iterable[StandInGpu]) -> str:
    """Returns the output of lspci -Dnn for the GPUs."""
    line = "{} 3D controller [0302]: NVIDIA Corporation {} [10de:{}] (rev a1)\n"
    return "".join(line.format(gpu.bus_id, gpu.name, gpu.product.device_id) for gpu in gpus)


def pci_files(gpu: StandInGpu) -> dict[str, str]:
    """Returns the kernel's files of a GPU below /sys/bus/pci/devices: path -> content."""
    return {
        f"{gpu.bus_id}/{name}": f"{text}\n"
        for name, text in (
            ("vendor", "0x10de"),
            ("device", f"0x{gpu.product.device_id}"),
            ("class", "0x030200"),
            ("revision", "0xa1"),
            ("numa_node", "-1"),
        )
    }


def driver_files(gpus: Iterable[StandInGpu]) -> dict[str, str]:
    """Returns the driver's files below /proc/driver/nvidia: path -> content."""
    version = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER}  Release Build  (stand-in)\n"
    files = {"version": version}
    for gpu in gpus:
        lines = {"Model": gpu.name, "GPU UUID": gpu.uuid, "Bus Location": gpu.bus_id, "Device Minor": gpu.index}
        files[f"gpus/{gpu.bus_id}/information"] = "".join(f"{name}: \t {text}\n" for name, text in lines.items())
    return files


def cdi_file(gpus: tuple[StandInGpu, ...], mounts: dict[str, str]) -> str:
    """A CDI specification that gives containers no device, but `mounts` (path here -> path there)."""
    edits = "".join(
        f"        - hostPath: {host}\n          containerPath: {inside}\n          options: [ro, bind]\n"
        for host, inside in mounts.items()
    )
    devices = "".join(
        f'  - name: "{name}"\n    containerEdits:\n      mounts:\n{edits}'
        for name in (*(str(gpu.index) for gpu in gpus), "all")
    )
    return f"# A stand-in: there is no GPU.\ncdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices:\n{devices}"
