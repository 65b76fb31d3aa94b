"""The collector as a machine sees it: run as a program, by old interpreters, beside misbehaving programs."""

from __future__ import annotations

import ast
import base64
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.health.collect import collector
from tests.stopwatch import Stopwatch

Program = Callable[[str, str], None]
SOURCE = Path(collector.__file__)
OLD_PYTHONS = [
    *sorted((Path.home() / ".pyenv" / "versions").glob("3.[678].*/bin/python")),
    Path("/usr/libexec/platform-python"),
]


def _run(*options: str, python: str = sys.executable) -> dict[str, Any]:
    command = [python, str(SOURCE), "--path", "", *options]  # only the programs of the test
    done = subprocess.run(command, capture_output=True, text=True, timeout=70, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_source_is_python_3_6_and_stdlib_only() -> None:
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 6))
    imported = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert imported <= sys.stdlib_module_names


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("python", [path for path in OLD_PYTHONS if path.exists()][:2], ids=str)
def test_old_interpreters_collect(python: Path) -> None:
    evidence = _run(python=str(python))
    assert evidence["schema_version"] == 1
    assert evidence["facts"]["kernel"]["ok"]
    assert "/proc/meminfo" in evidence["files"]


@pytest.mark.usefixtures("program")
def test_missing_programs_are_recorded_as_missing() -> None:
    evidence = _run()
    assert evidence["commands"]["nvidia_smi_xml"]["missing"] is True
    assert evidence["commands"]["nvidia_smi_xml"]["rc"] is None
    assert evidence["duration_s"] < 40


def test_hang_costs_one_timeout_and_no_further_driver_commands(program: Program) -> None:
    program("nvidia-smi", "sleep 60")
    program("journalctl", "echo 'x kernel: NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU fell'; echo boring")
    start = time.monotonic()
    evidence = _run("--driver-timeout", "1")
    assert time.monotonic() - start < 12
    smi = evidence["commands"]["nvidia_smi_xml"]
    assert smi["timed_out"] is True
    assert smi["rc"] is None
    assert smi["state"] in set("SRD")
    assert "nvidia_smi_list" not in evidence["commands"]
    assert evidence["commands"]["kernel_log"]["stdout"].count("\n") == 0
    assert "79" in evidence["commands"]["kernel_log"]["stdout"]


def test_output_of_a_process_that_outlives_its_parent_is_not_waited_for(program: Program) -> None:
    program("nvidia-smi", "echo early; (sleep 60) & exit 0")
    evidence = _run("--driver-timeout", "5")
    smi = evidence["commands"]["nvidia_smi_xml"]
    assert smi["stdout"] == "early\n"
    assert smi["rc"] == 0


def test_status_and_both_streams_are_kept(program: Program) -> None:
    program("nvidia-smi", "echo out; echo err >&2; exit 9")
    evidence = _run()
    smi = evidence["commands"]["nvidia_smi_xml"]
    assert (smi["rc"], smi["stdout"], smi["stderr"]) == (9, "out\n", "err\n")
    assert evidence["commands"]["nvidia_smi_text"]["rc"] == 9


def test_csv_asks_only_for_fields_the_node_knows(program: Program) -> None:
    program(
        "nvidia-smi",
        'if [ "$1" = --help-query-gpu ]; then echo \'"pci.bus_id" or "gpu_bus_id"\'; else echo "$@"; fi',
    )
    evidence = _run()
    assert evidence["commands"]["nvidia_smi_csv"]["argv"][1] == "--query-gpu=pci.bus_id"


def test_long_output_is_cut_and_marked(program: Program) -> None:
    program("apt-mark", "yes | head -c 100000")
    evidence = _run()
    held = evidence["commands"]["apt_hold"]
    assert len(held["stdout"]) == 32 * 1024
    assert held["truncated"] is True
    assert held["rc"] == 0


@pytest.mark.usefixtures("program")
def test_deadline_leaves_the_rest_unstarted() -> None:
    evidence = _run("--deadline", "0")
    states = [result.get("not_started") for result in evidence["commands"].values()]
    assert all(states)
    assert evidence["facts"]["kernel"]["ok"] is False


@pytest.mark.usefixtures("program")
def test_packed_form_is_gzip_in_base64() -> None:
    done = subprocess.run([sys.executable, str(SOURCE), "--packed", "--path", ""], capture_output=True, check=True)
    document = json.loads(gzip.decompress(base64.b64decode(done.stdout)))
    assert document["schema_version"] == 1


def test_redaction_is_stable_and_keeps_the_driver_s_words(snapshot: SnapshotAssertion) -> None:
    uuid = "GPU-509665ad-b600-ac93-3616-d754b23d636d"
    text = (
        f"<uuid>{uuid}</uuid><serial>1650124014249</serial><serial>N/A</serial><serial>GPU is lost</serial>"
        f"\nGPU 0: T4 (UUID: {uuid})\nNVRM: GPU Board Serial Number: 1650124014249\nSerial Number : N/A"
    )
    redacted = str(collector.redact({"a": [text]}))
    assert "1650124014249" not in redacted
    assert uuid not in redacted
    assert redacted.count("GPU-redacted-") == 2
    assert len(set(re_find(redacted, "GPU-redacted-"))) == 1
    assert "<serial>N/A</serial><serial>GPU is lost</serial>" in redacted
    assert redacted == snapshot


def re_find(text: str, prefix: str) -> list[str]:
    """The words after each occurrence of `prefix`."""
    return [part[:12] for part in text.split(prefix)[1:]]


def test_shrink_halves_the_largest_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "TOTAL_CUT", 3000)
    document: dict[str, Any] = {"commands": {"a": {"stdout": "x" * 9000}, "b": {"stdout": "y" * 100}}}
    collector.shrink(document)
    assert document["commands"]["a"]["truncated"] is True
    assert len(json.dumps(document)) <= 3000
    assert document["commands"]["b"] == {"stdout": "y" * 100}


def test_shrink_keeps_the_end_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "TOTAL_CUT", 3000)
    document: dict[str, Any] = {"commands": {"kernel_log": {"stdout": "x" * 9000 + "79", "lines": 9}}}
    collector.shrink(document)
    assert document["commands"]["kernel_log"]["stdout"].endswith("79")
    assert document["commands"]["kernel_log"]["truncated"] is True


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('password = "hunter2"', 'password = "masked"'),
        ("auth = 'aHVudGVyMg=='", "auth = 'masked'"),
        ('identitytoken = "hunter2"', 'identitytoken = "masked"'),
        ('"identitytoken": "hunter2"', '"identitytoken": "masked"'),
        ('{"auth":"hunter2","email":"a"}', '{"auth":"masked","email":"a"}'),
        ("registry_token: hunter2\nnext: 1", "registry_token: masked\nnext: 1"),
        ('client.secret="hunter2 has \\" three words"', 'client.secret="masked"'),
        ('Authorization = ["Basic hunter2"]', 'Authorization = ["masked"]'),
        ('"HttpProxy":"http://me:hunter2@proxy:3128"', '"HttpProxy":"http://masked@proxy:3128"'),
        ("password=hunter2", "password=masked"),
        ('{"token":12345678,"a":1}', '{"token":"masked","a":1}'),
    ],
)
def test_credentials_never_leave_the_machine(text: str, kept: str) -> None:
    assert collector.mask({"files": {"/etc/x": text}}) == {"files": {"/etc/x": kept}}


@pytest.mark.parametrize(
    "text",
    [
        'password = ""',
        '[plugins."io.containerd.grpc.v1.cri".registry.configs."r".auth]\n  username = "u"',
        "authorization:\n  mode: Webhook",
        'pool = "tokens"\nauthors = "us"',
        "NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus",
        "https://registry.example/v2/",
        '{"Authorization":null,"Log":["x"],"auth":true}',
    ],
)
def test_what_is_no_credential_is_kept(text: str) -> None:
    assert collector.mask([text]) == [text]


def test_configuration_of_containerd_arrives_without_its_passwords(
    program: Program, snapshot: SnapshotAssertion
) -> None:
    program("containerd", """echo '[registry.auth]'; echo '  password = "hunter2"'; echo '  auth = "c2VjcmV0"'""")
    config = _run("--redact")["commands"]["containerd_config"]["stdout"]
    assert config == snapshot


def test_redaction_takes_the_names_of_disks() -> None:
    text = (
        '{"wwn": {\n "naa": 5,\n "id": 123456 }, "serial_number": "S4X12345", "eui64": {"oui": 1}, "temperature": {}}'
    )
    redacted = json.loads(str(collector.redact(text)))
    assert redacted["wwn"].startswith("redacted-")
    assert "123456" not in str(redacted)
    assert redacted["temperature"] == {}


def test_programs_are_found_without_an_environment(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho here\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    command = [sys.executable, str(SOURCE), "--path", f"/bin:{tmp_path}", "--deadline", "5"]
    done = subprocess.run(command, capture_output=True, text=True, env={}, check=True)
    assert json.loads(done.stdout)["commands"]["nvidia_smi_xml"]["stdout"] == "here\n"
    for folder in ("/usr/sbin", "/usr/local/bin"):
        assert folder in collector.SEARCH_PATH.split(":")


def test_a_program_that_cannot_be_started_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 11 + b"\xb7" + b"\0" * 45)
    (tmp_path / "lspci").write_text("#!/no/such/interpreter\n")
    for name in ("nvidia-smi", "lspci"):
        (tmp_path / name).chmod(0o755)
    command = [sys.executable, str(SOURCE), "--path", f"/bin:{tmp_path}", "--deadline", "5"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=True)
    found = json.loads(done.stdout)["commands"]
    assert "format" in found["nvidia_smi_xml"]["refused"].lower()
    assert found["lspci"]["refused"]
    assert not found["lspci"]["exhausted"]
    assert found["nvidia_smi_xml"]["rc"] is None


def test_a_machine_without_another_process_still_gives_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)
    monkeypatch.setattr(subprocess, "Popen", full)
    before = len(list(Path("/proc/self/fd").iterdir()))
    work: list[object] = [["true"], lambda: 1]
    jobs = [collector.Errand(str(number), item, 5, 1000) for number, item in enumerate(work)]
    done = collector.run_jobs(jobs, time.monotonic() + 5, lambda _: [])
    assert {job.result["refused"] for job in done.values()} == {"Resource temporarily unavailable"}
    assert all(job.result["exhausted"] for job in done.values())
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_a_flood_on_any_stream_leaves_the_other_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "TOTAL_CUT", 5000)
    commands: dict[str, dict[str, Any]] = {
        "nvidia_smi_xml": {"stdout": "", "stderr": "\x00" * 90_000},
        "ps": {"stdout": "p" * 900, "stderr": ""},
        "gone": {"missing": True},
    }
    document: dict[str, Any] = {"commands": commands}
    collector.shrink(document)
    assert len(json.dumps(document)) <= 5000
    assert commands["ps"] == {"stdout": "p" * 900, "stderr": ""}
    assert commands["nvidia_smi_xml"]["truncated"] is True


def config(kind: int, control: int, *, length: int = 4096) -> bytes:
    """A PCI configuration space with PCI Express at 0x40 and ACS at 0x140."""
    space = bytearray(4096)
    space[0x34], space[0x40], space[0x42] = 0x40, 0x10, kind << 4
    space[0x100:0x104] = (0x0001 | 0x140 << 20).to_bytes(4, "little")
    space[0x140:0x144] = (0x000D).to_bytes(4, "little")
    space[0x146:0x148] = control.to_bytes(2, "little")
    return bytes(space[:length])


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (config(6, 0x1D), "0x1d"),
        (config(6, 0), "0x0"),
        (config(4, 0x1D), ""),
        (config(6, 0x1D, length=64), ""),
        (config(6, 0x1D, length=256), "?"),
        (b"", ""),
        (b"\xff" * 4096, ""),
    ],
)
def test_acs_of_a_switch_s_port_is_read_from_its_configuration(space: bytes, said: str) -> None:
    assert collector.acs_control(space) == said


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("cuda", "docker.io/library/cuda:latest"),
        ("nvidia/cuda:13.0", "docker.io/nvidia/cuda:13.0"),
        ("localhost/cuda:1", "localhost/cuda:1"),
        ("nvcr.io/nvidia/cuda", "nvcr.io/nvidia/cuda:latest"),
        ("box:5000/cuda", "box:5000/cuda:latest"),
        ("cuda@sha256:abc", "docker.io/library/cuda@sha256:abc"),
    ],
)
def test_image_has_its_full_name_in_containerd(image: str, full: str) -> None:
    assert collector.full_name(image) == full


def test_containerd_prints_the_uuids_of_its_gpus() -> None:
    jobs = collector.next_jobs(job("nvidia_smi_xml", rc=0, stdout=""), "cuda")
    containerd = next(item for item in jobs if item.name == "containerd_gpu")
    assert containerd.argv[-2:] == ["nvidia-smi", "-L"]
    assert "docker.io/library/cuda:latest" in containerd.argv


def test_time_for_a_cold_driver_fits_into_the_deadline() -> None:
    assert 30 < collector.DRIVER_TIMEOUT_S < collector.DEADLINE_S < 60


def test_children_that_cannot_be_killed_at_the_deadline_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    jobs = [collector.Errand(f"sleeper {number}", ["sleep", "30"], 60, 100) for number in range(8)]
    watch = Stopwatch()
    # at the deadline all have been started, also on a busy host
    done = collector.run_jobs(jobs, time.monotonic() + 4, lambda _: [])
    assert watch.within(12)
    assert all(item.result["unkillable"] for item in done.values())


def test_job_that_cannot_be_killed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "KILL_WAIT_S", 0.1)
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    job = collector.Errand("sleeper", ["sleep", "30"], 0.1, 100)
    done = collector.run_jobs([job], time.monotonic() + 60, lambda _: [])
    assert done["sleeper"].result["unkillable"] is True
    assert done["sleeper"].result["timed_out"] is True


def test_driver_and_pci_files_are_read_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "state").write_text("4: ACTIVE\n")
    found = collector.read_files("/*/state", str(tmp_path))
    assert found == {f"{tmp_path}/a/state": "4: ACTIVE"}


def test_tables_name_each_command_once_and_can_be_started() -> None:
    tables = (
        collector.COMMANDS,
        collector.AFTER_DRIVER,
        collector.DRIVER_REFUSED,
        collector.DEEP.format(image="x", full="x", pid=1, all_gpus=collector.ALL_GPUS),
    )
    jobs = [job for table in tables for job in collector.table_jobs(table)]
    names = [job.name for job in jobs]
    assert len(names) == len(set(names))
    assert all(job.argv and 1 <= job.timeout <= 30 and job.cut >= 4096 for job in jobs)


def test_nothing_that_is_run_changes_the_machine() -> None:
    tables = (collector.COMMANDS, collector.AFTER_DRIVER, collector.DRIVER_REFUSED)
    words = {word for table in tables for job in collector.table_jobs(table) for word in job.argv}
    assert not words & {"restart", "start", "stop", "enable", "set", "--gpu-reset", "-r", "-pm", "-e=1", "modprobe"}


def job(name: str, **result: object) -> collector.Errand:
    found = collector.Errand(name, ["x"], 1, 1)
    found.result.update(result)
    return found


def test_the_driver_s_first_answer_decides_what_follows() -> None:
    def following(**result: object) -> set[str]:
        return {item.name for item in collector.next_jobs(job("nvidia_smi_xml", **result), "")}

    fine = following(rc=0, stdout="<pid>77</pid>")
    assert {"nvidia_smi_list", "nvidia_smi_nvlink", "gpu_processes"} <= fine
    assert "nvidia_smi_table" not in fine
    assert {"nvidia_smi_text", "nvidia_smi_table"} <= following(rc=9, stdout="")
    assert following(rc=None, timed_out=True, stdout="") == set()
    deep = {item.name for item in collector.next_jobs(job("nvidia_smi_xml", rc=0, stdout=""), "cuda:13; rm -rf /")}
    assert {"docker_gpu", "containerd_gpu"} <= deep


def test_image_name_stays_one_word() -> None:
    jobs = collector.next_jobs(job("nvidia_smi_xml", rc=0, stdout=""), "cuda 13; rm")
    docker = next(item for item in jobs if item.name == "docker_gpu")
    assert "cuda 13; rm" in docker.argv
    assert "/dev/null:/var/run/nvidia-container-devices/all" in " ".join(docker.argv), "believed wherever it is set up"


def test_processes_are_looked_at_again_only_where_one_waits_or_ended(snapshot: SnapshotAssertion) -> None:
    header = "    PID STAT PPID ELAPSED WCHAN COMMAND\n"
    waits = job("ps", rc=0, stdout=header + "      9 D        1       0 x  nvidia-smi\n")
    (again,) = collector.next_jobs(waits, "")
    assert again.name == "ps_again"
    assert again.argv[-1] == snapshot
    zombie = job("ps", rc=0, stdout=header + "      9 Z        1       0 -  sh <defunct>\n")
    assert [item.name for item in collector.next_jobs(zombie, "")] == ["ps_again"]
    assert collector.next_jobs(job("ps", rc=0, stdout=header + "      9 S        1       0 -  Daemon\n"), "") == []


def test_every_disk_that_smartctl_finds_is_asked() -> None:
    found = collector.next_jobs(job("smart_scan", rc=0, stdout="/dev/sda -d scsi\n/dev/nvme0 -d nvme\n# no\n"), "")
    assert [item.name for item in found] == ["smart:/dev/sda", "smart:/dev/nvme0"]
    assert collector.next_jobs(job("smart_scan", rc=1, stdout="/dev/sda"), "") == []
    many = "\n".join(f"/dev/sd{number} -d scsi" for number in range(90))
    assert len(collector.next_jobs(job("smart_scan", rc=0, stdout=many), "")) == 24


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("NVRM: Xid (PCI:0000:18:00): 79", True),
        ("pcieport 0000:17:00.0: AER: Corrected error", False),
        ("EXT4-fs error (device sda1)", True),
        ("EXT4-fs (sda1): Remounting filesystem read-only", True),
        ("XFS (sda1): Corruption of in-memory data detected", True),
        ("BTRFS: error (device sda1): bdev errs", True),
        ("mce: [Hardware Error]: CPU 3: Machine Check Exception", True),
        ("oom-kill:constraint=CONSTRAINT_NONE", True),
        ("eth0: Link is Down", True),
        ("eth0: lost carrier", True),
        ("pci 0000:18:00.0: 126.016 Gb/s available PCIe bandwidth, limited by 16.0 GT/s", True),
        ("nvidia: module verification failed", True),
        ("GPU 0000:18:00.0 has fallen off the bus.", True),
        ("mlx5_core 0000:5e:00.0: firmware version", False),
        ("task python blocked for more than 120 seconds", True),
        ("mlx5_core 0000:5e:00.0: device's health compromised", True),
        ("usb 1-1: new high-speed USB device", False),
        ("", False),
    ],
)
def test_kernel_lines_that_a_check_may_ask_for_are_kept(line: str, kept: bool) -> None:
    assert bool(kernel_lines(line).text()) is kept


def kernel_lines(*lines: str) -> collector.LogLines:
    """What the collector keeps of such a log, which comes in pieces."""
    log = collector.LogLines()
    data = "\n".join(lines).encode()
    for start in range(0, len(data), 1000):
        log.feed(data[start : start + 1000])
    return log


def test_long_kernel_log_keeps_its_newest_lines(snapshot: SnapshotAssertion) -> None:
    kept = kernel_lines(*(f"NVRM: Xid (PCI:0000:18:00): 13, pid={number}" for number in range(100_000)))
    lines = kept.text().splitlines()
    assert lines[-1] == snapshot
    assert len(lines) == collector.LINES_OF_A_KIND
    assert (kept.lines, kept.dropped) == (100_000, 100_000 - len(lines))


def test_storm_of_one_kind_pushes_out_no_other() -> None:
    lost = "NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus"
    storm = ["pcieport 0000:17:00.0: AER: Corrected error received"] * 5000
    faults = ["NVRM: Xid (PCI:0000:18:00): 13, pid=2, Graphics Exception"] * 5000
    kept = kernel_lines("pcieport 0000:17:00.0: AER: Uncorrected (Fatal) error", lost, *storm, *faults)
    assert kept.text().splitlines()[:2] == ["pcieport 0000:17:00.0: AER: Uncorrected (Fatal) error", lost]


def test_words_of_journalctl_are_no_lines_of_the_kernel() -> None:
    empty = kernel_lines("-- No entries --")
    assert (empty.text(), empty.lines) == ("", 0)


def test_a_long_log_is_filtered_in_a_moment() -> None:
    line = b"2026-09-21T14:00:00+0000 n kernel: audit: type=1400 apparmor operation=open profile=/usr/sbin/chronyd\n"
    log = collector.LogLines()
    start = time.process_time()
    for _ in range(100):
        log.feed(line * 500)
    assert log.lines == 50_000
    assert time.process_time() - start < 2


def test_newest_line_of_a_long_journal_arrives(program: Program) -> None:
    xid = "NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus"
    program("journalctl", f"yes 'kernel: {'x' * 200}' | head -n 80000; echo '{xid}'")
    log = _run("--driver-timeout", "1")["commands"]["kernel_log"]
    assert log["stdout"] == xid
    assert log["lines"] == 80_001
    assert "truncated" not in log


def test_processes_of_a_gpu_are_looked_up() -> None:
    found = collector.read_gpu_processes([str(os.getpid()), "999999999"])
    assert found[str(os.getpid())]["name"]
    assert found["999999999"] == {"name": "", "cgroup": ""}


def test_reader_that_breaks_costs_only_itself() -> None:
    def broken() -> object:
        raise OSError("no")

    jobs = [collector.Errand("bad", broken, 30, 1000), collector.Errand("good", lambda: {"a": 1}, 30, 1000)]
    done = collector.run_jobs(jobs, time.monotonic() + 60, lambda _: [])
    assert done["bad"].result["rc"] == 1
    assert json.loads(str(done["good"].result["stdout"])) == {"a": 1}


def test_reader_that_hangs_costs_its_own_timeout() -> None:
    start = time.monotonic()
    done = collector.run_jobs([collector.Errand("slow", lambda: time.sleep(20), 0.3, 1000)], start + 10, lambda _: [])
    assert done["slow"].result["timed_out"] is True
    assert time.monotonic() - start < 9


def test_state_of_a_process() -> None:
    assert collector.process_state(os.getpid()) in set("RSD")
    assert collector.process_state(999_999_999) == ""
