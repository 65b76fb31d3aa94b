"""The parsers, on small texts of our own in every form the tools have."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.health.evidence.parse import host, links, nccl, nvidia
from pai_install.health.evidence.parse.numbers import whole
from pai_install.health.evidence.reading import ABSENT, Reading, State, parse_reading
from tests.unit.health.machines import h100, smi_xml


@pytest.mark.parametrize(
    ("text", "state", "number"),
    [
        ("29 C", State.VALUE, 29.0),
        ("-8 C", State.VALUE, -8.0),
        ("16x", State.VALUE, 16.0),
        ("7015662857 us", State.VALUE, 7015662857.0),
        ("68.57 W", State.VALUE, 68.57),
        ("2560 bank(s)", State.VALUE, 2560.0),
        ("0", State.VALUE, 0.0),
        ("100.00%", State.VALUE, 100.0),
        ("None", State.VALUE, None),
        ("Yes", State.VALUE, None),
        ("580.95.05", State.VALUE, None),
        ("N/A", State.NOT_AVAILABLE, None),
        ("[N/A]", State.NOT_AVAILABLE, None),
        ("[Not Supported]", State.NOT_AVAILABLE, None),
        ("Requested functionality has been deprecated", State.NOT_AVAILABLE, None),
        ("[Requested functionality has been deprecated]", State.NOT_AVAILABLE, None),
        ("Unknown Error", State.ERROR, None),
        ("[Unknown Error]", State.ERROR, None),
        ("ERR!", State.ERROR, None),
        ("GPU is lost", State.ERROR, None),
        ("[GPU requires reset]", State.ERROR, None),
        ("[Insufficient Permissions]", State.ERROR, None),
        ("Unknown", State.ERROR, None),
        ("", State.ABSENT, None),
        ("   ", State.ABSENT, None),
        (None, State.ABSENT, None),
    ],
)
def test_readings(text: str | None, state: State, number: float | None) -> None:
    reading = parse_reading(text)
    assert reading.state is state
    assert reading.number == number
    if state is State.ABSENT:
        assert reading == ABSENT == Reading(State.ABSENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00000000:0A:00.0", "0000:0a:00.0"),
        ("0000:0A:00.0", "0000:0a:00.0"),
        ("0A:00.0", "0000:0a:00.0"),
        ("PCI:0000:9b:00", "0000:9b:00.0"),
        ("000014ED:00:00.0", "14ed:00:00.0"),
        ("10000:01:00.0", "10000:01:00.0"),
        ("GPU 3", "gpu 3"),
    ],
)
def test_bus_ids(text: str, expected: str) -> None:
    assert nvidia.normalise_bus_id(text) == expected


def test_xml_keeps_what_stands_around_it(snapshot: SnapshotAssertion) -> None:
    text = "WARNING: infoROM is corrupted at gpu 0000:18:00.0\n" + smi_xml([h100()], around="\nlast words\n")
    report = nvidia.parse_xml(text)
    assert report.stray == snapshot
    assert report.attached == "1"
    assert report.gpus[0].bus_id == "0000:18:00.0"


def test_xml_never_reads_a_doctype() -> None:
    bomb = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa">]>\n<nvidia_smi_log><x>&a;</x></nvidia_smi_log>'
    with pytest.raises(nvidia.ParseError):
        nvidia.parse_xml(bomb)


def test_xml_takes_repeated_elements_by_their_whole_path() -> None:
    texts = nvidia.parse_xml(smi_xml([h100()])).gpus[0].texts
    assert texts["clocks/sm_clock"] == "345 MHz"
    assert texts["max_clocks/sm_clock"] == "1980 MHz"


def test_xml_counts_mig_devices_and_lists_processes() -> None:
    texts = h100() | {"mig_devices": "3", "processes": "5,C,python,100 MiB;6,G,Xorg,N/A"}
    gpu = nvidia.parse_xml(smi_xml([texts])).gpus[0]
    assert gpu.mig_devices == 3
    assert gpu.processes == (nvidia.GpuProcess("5", "C", "python", 100.0), nvidia.GpuProcess("6", "G", "Xorg", None))


@pytest.mark.parametrize(
    ("driver", "kmd", "expected"),
    [
        ("580.95.05", "", "580.95.05"),
        ("610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]", "610.57.04", "610.57.04"),
        ("Deprecated, see KMD version instead", "620.1", "620.1"),
        ("Deprecated", "", ""),
        ("", "", ""),
    ],
)
def test_driver_version_under_both_names(driver: str, kmd: str, expected: str) -> None:
    assert nvidia.driver_version(driver, kmd) == expected


TEXT = """
==============NVSMI LOG==============

Driver Version                            : 460.32.03
CUDA Version                              : 11.2

Attached GPUs                             : 1
GPU 00000001:00:00.0
    Product Name                          : A100-SXM4-40GB
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    MIG Device
        Index                             : 0
    MIG Device
        Index                             : 1
    Clocks Throttle Reasons
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Active
    ECC Errors
        Volatile
            SRAM Uncorrectable SEC-DED    : 3
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 11327
            Type                          : C
            Name                          : /root/a b
            Used GPU Memory               : 2566 MiB
WARNING: infoROM is corrupted at gpu 0001:00:00.0
"""


def test_text_form(snapshot: SnapshotAssertion) -> None:
    report = nvidia.parse_text(TEXT)
    gpu = report.gpus[0]
    assert (report.driver_version, report.attached, report.form) == ("460.32.03", "1", "text")
    assert gpu.bus_id == "0001:00:00.0"
    assert gpu.mig_devices == 2
    assert gpu.texts["clocks_throttle_reasons/hw_slowdown"] == "Not Active"
    assert gpu.texts["clocks_throttle_reasons/hw_slowdown/hw_thermal_slowdown"] == "Active"
    assert gpu.texts["ecc_errors/volatile/sram_uncorrectable_sec_ded"] == "3"
    assert gpu.processes == (nvidia.GpuProcess("11327", "C", "/root/a b", 2566.0),)
    assert report.stray == snapshot


def test_csv_form_with_units_in_the_header() -> None:
    text = 'warning\npci.bus_id, name, temperature.gpu [C]\n00000000:18:00.0, "A, B", 31\nshort\n'
    assert nvidia.parse_csv(text) == {
        "0000:18:00.0": {"csv/pci.bus_id": "00000000:18:00.0", "csv/name": "A, B", "csv/temperature.gpu": "31"}
    }
    assert nvidia.parse_csv('Field "x" is not a valid field to query.') == {}


def test_table_form(snapshot: SnapshotAssertion) -> None:
    text = (
        "| NVIDIA-SMI 460.32.03    Driver Version: 460.32.03    CUDA Version: 11.2     |\n"
        "|   0  Tesla V100-SXM2...  Off  | 00000001:00:00.0 Off |                    0 |\n"
        "| N/A   40C    P0    43W / 300W |      0MiB / 32510MiB |      0%      Default |\n"
        "WARNING: infoROM is corrupted at gpu 0001:00:00.0\n"
    )
    report = nvidia.parse_table(text)
    assert report.driver_version == "460.32.03"
    assert report.gpus[0].bus_id == "0001:00:00.0"
    assert report.gpus[0].texts["product_name"] == "Tesla V100-SXM2..."
    assert report.stray == snapshot


@pytest.mark.parametrize("parse", [nvidia.parse_text, nvidia.parse_table])
def test_forms_without_a_gpu_are_refused(parse: object) -> None:
    with pytest.raises(nvidia.ParseError):
        parse("No devices were found\n")  # type: ignore[operator]


# NVLink, PCI, InfiniBand


def test_nvlink_status(snapshot: SnapshotAssertion) -> None:
    text = "GPU 0: A (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\nGPU 1: B\nNVML: all links are inActive\n"
    first, second = links.parse_nvlink_status(text)
    assert dict(first.speeds) == {0: 25.0, 1: None}
    assert (first.uuid, first.name, first.index) == ("GPU-1", "A", 0)
    assert (second.uuid, second.note) == snapshot


def test_nvlink_errors() -> None:
    text = "GPU 0: A (UUID: GPU-1)\n\t Link 0: Replay Errors: 3\n\t Link 0: CRC Errors: 0\n\t Link 1: N/A\nGPU 2: B\n"
    assert links.parse_nvlink_errors(text) == {0: {"link 0: Replay Errors": 3, "link 0: CRC Errors": 0}, 2: {}}
    assert links.parse_nvlink_errors("\t Link 0: Replay Errors: 3") == {}


def test_lspci_with_and_without_domain() -> None:
    text = (
        "0001:00:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 SXM4 80GB] [10de:20b2] (rev a1)\n"
        "05:00.0 Bridge [0680]: NVIDIA Corporation Device [10de:1af1] (rev a1)\n"
        "0101:00:00.0 VGA compatible controller [0300]: NVIDIA Corporation Device [10de:2204] (rev ff)\n"
        "0000:00:1f.0 ISA bridge [0601]: Intel Corporation [8086:a1c1]\n"
        "rubbish\n"
    )
    devices = links.parse_lspci(text)
    assert [device.bus_id for device in links.nvidia_gpus(devices)] == ["0001:00:00.0", "0101:00:00.0"]
    assert [device.lost for device in links.nvidia_gpus(devices)] == [False, True]
    assert [device.bus_id for device in links.nvswitches(devices)] == ["0000:05:00.0"]
    assert len(devices) == 4


@pytest.mark.parametrize(
    ("text", "value"),
    [(" 42\n", 42), ("18446744073709551615", 2**64 - 1), ("9" * 5000, None), ("-1", None), ("", None)],
)
def test_a_counter_is_no_longer_than_64_bits(text: str, value: int | None) -> None:
    """Python reads no number of thousands of digits: one such file of a machine ended the report of all."""
    assert whole(text) == value


def test_numbers_of_thousands_of_digits_are_none() -> None:
    long = "9" * 5000
    (port,) = links.parse_infiniband({"/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": long})
    assert port.counters == {}
    assert links.parse_nvlink_errors(f"GPU 0: H100 (UUID: GPU-1)\n  Link 0: Replay Errors: {long}\n") == {0: {}}
    assert host.parse_meminfo(f"MemTotal: {long} kB\n") == {}
    assert host.parse_ps(f"1 S 0 {long} - init\n") == ()
    assert nccl.parse_all_reduce(f"# Out of bounds values : {long}\n") is None


def test_infiniband_ports() -> None:
    files = {
        "/sys/class/infiniband/mlx5_0/fw_ver": "28.41.1000\n",
        "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
        "/sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
        "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "255",
        "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan": "nothing",
        "/sys/class/infiniband/mlx5_1/ports/1/rate": "",
    }
    first, second = links.parse_infiniband(files)
    assert (first.name, first.rate, first.firmware, dict(first.counters)) == (
        "mlx5_0/1",
        400.0,
        "28.41.1000",
        {"link_downed": 255},
    )
    assert (second.name, second.rate, second.state) == ("mlx5_1/1", None, "")


def test_fabric_log() -> None:
    text = (
        "[INFO] [tid 1] successfully released multicast team\n"
        "[ERROR] [tid 2] detected NVSwitch non-fatal error 12028 on fid 0\n"
        "[ERROR] [tid 2] detected NVSwitch fatal error 20034 on fid 0\n"
        "[ERROR] [tid 2] failed to find the GPU handle 5 in the multicast team\n"
        "[INFO] NV_WARN_NOTHING_TO_DO\n"
    )
    assert [error.fatal for error in links.parse_fabric_log(text)] == [False, True, True]


# Host


def test_units() -> None:
    text = (
        "Id=docker.service\nLoadState=loaded\nActiveState=active\nNRestarts=3\n\nId=ntp.service\nLoadState=not-found\n"
    )
    found = host.parse_units(text)
    assert found["docker"] == host.Unit("docker", loaded=True, active="active", restarts=3)
    assert not found["ntp"].loaded
    assert host.parse_units("rubbish") == {}


def test_meminfo_mounts_swaps_modules() -> None:
    assert host.parse_meminfo("MemTotal:  100 kB\nHugePages_Total: 7\n") == {"MemTotal": 102400, "HugePages_Total": 7}
    mounts = host.parse_mounts("/dev/sda1 / ext4 rw,noatime 0 0\n/dev/sdb1 /d xfs ro 0 0\nshort\n")
    assert [(mount.path, mount.read_only) for mount in mounts] == [("/", False), ("/d", True)]
    assert host.parse_swaps("Filename\tType\n/swap file\n") == ("/swap",)
    assert host.parse_modules("nvidia 1 0 - Live\n\nzfs 2") == {"nvidia", "zfs"}


def test_tracking() -> None:
    line = "0A000001,10.0.0.1,3,1790000000.5,-0.00002,0.1,0.2,1,2,3,0.002,0.004,64.2,Normal\n"
    found = host.parse_tracking(line)
    assert found is not None
    assert (found.reference, found.stratum, found.offset, found.leap) == ("0A000001", 3, -0.00002, "Normal")
    assert found.root_distance == pytest.approx(0.005)
    assert host.parse_tracking("506 Cannot talk to daemon") is None
    assert host.parse_tracking(line.replace(",3,", ",three,")) is None


def test_ps() -> None:
    text = "    PID STAT    PPID ELAPSED WCHAN COMMAND\n   9 D<l 1 4000 nvidia_x a b\nshort line\n"
    assert host.parse_ps(text) == (host.ProcessLine("9", "D<l", 4000, "nvidia_x", "a b", "1"),)


def test_kubernetes_nodes() -> None:
    capacity = '{"cpu":"128","memory":"1056000000Ki","nvidia.com/gpu":"8"}'
    text = f"gpu-01\ttrue\t{capacity}\t{capacity}\tTrue\ngpu-02\t\tnot json\t{{}}\t\nbroken\n"
    nodes = host.parse_kubernetes_nodes(text)
    assert nodes["gpu-01"].cordoned
    assert nodes["gpu-01"].allocatable == {"cpu": 128, "memory": 1056000000 * 1024, "nvidia.com/gpu": 8}
    assert nodes["gpu-02"].capacity == {}
    assert set(nodes) == {"gpu-01", "gpu-02"}
