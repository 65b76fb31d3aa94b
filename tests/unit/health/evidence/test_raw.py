"""The raw evidence of a machine as text for people."""

from __future__ import annotations

from pathlib import Path

from pai_install.health.evidence.raw import raw_name, write_raw

DOCUMENT = {
    "schema_version": 1,
    "hostname": "gpu-01",
    "collected_at": 1_790_000_000,
    "duration_s": 3.2,
    "commands": {
        "nvidia_smi_list": {"argv": ["nvidia-smi", "-L"], "rc": 0, "stdout": "GPU 0: A\nGPU 1: A\n", "duration_s": 1},
        "ps": {"rc": 1, "stdout": "", "stderr": "no\n", "duration_s": 0.2, "truncated": True},
        "dkms": {"missing": True, "rc": None},
        "dcgm_health": {"refused": "Exec format error", "rc": None},
        "smart_scan": {"not_started": True, "rc": None},
        "nvidia_smi_xml": {"timed_out": True, "rc": None, "state": "D", "wchan": "os_acquire", "duration_s": 45},
    },
    "files": {"/proc/swaps": "Filename Type\n"},
    "facts": {"kernel": {"stdout": '{"release": "6.1"}', "rc": 0}},
}  # fmt: skip


def test_what_every_command_said_and_how_it_ended(tmp_path: Path) -> None:
    path = write_raw(tmp_path, "gpu-01", DOCUMENT)
    assert path == tmp_path / "gpu-01.txt"
    assert path.stat().st_mode & 0o777 == 0o600
    told = path.read_text()
    assert told.startswith("gpu-01, 2026-09-21 ")
    for words in (
        "$ nvidia_smi_list: ended with 0 after 1.0 s\n  GPU 0: A\n  GPU 1: A\n",
        "$ ps: ended with 1 after 0.2 s, its output was cut\n  on standard error:\n  no\n",
        "$ dkms: there is no such program",
        "$ dcgm_health: the kernel did not start it: Exec format error",
        "$ smart_scan: not started",
        "$ nvidia_smi_xml: no end within 45 s, state D os_acquire",
    ):
        assert words in told
    assert "\n/proc/swaps\n  Filename Type\n" in told


def test_a_machine_s_file_stays_in_its_folder(tmp_path: Path) -> None:
    for name in ("../../etc/x", "/etc/x", "..", "a b", "größe"):
        assert "/" not in raw_name(name)
        assert write_raw(tmp_path / "raw", name, DOCUMENT).parent == tmp_path / "raw"
