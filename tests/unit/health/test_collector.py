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

from pai_install.health import collector

Program = Callable[[str, str], None]
SOURCE = Path(collector.__file__)
OLD_PYTHONS = [
    *sorted((Path.home() / ".pyenv" / "versions").glob("3.[678].*/bin/python")),
    Path("/usr/libexec/platform-python"),
]


def _run(*options: str, python: str = sys.executable) -> dict[str, Any]:
    done = subprocess.run([python, str(SOURCE), *options], capture_output=True, text=True, timeout=70, check=True)
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
    assert evidence["duration_s"] < 10


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
    program("nvidia-smi", "echo early; (sleep 30) & exit 0")
    evidence = _run("--driver-timeout", "1")
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
    done = subprocess.run([sys.executable, str(SOURCE), "--packed"], capture_output=True, check=True)
    document = json.loads(gzip.decompress(base64.b64decode(done.stdout)))
    assert document["schema_version"] == 1


def test_redaction_is_stable_and_keeps_the_driver_s_words() -> None:
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
    assert "Serial Number : N/A" in redacted


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


def test_job_that_cannot_be_killed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "KILL_WAIT_S", 0.1)
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    job = collector.Job("sleeper", ["sleep", "3"], 0.1, 100)
    done = collector.run_jobs([job], time.monotonic() + 5, lambda _: [])
    assert done["sleeper"].result["unkillable"] is True
    assert done["sleeper"].result["timed_out"] is True


def test_driver_and_pci_files_are_read_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "state").write_text("4: ACTIVE\n")
    found = collector.read_files("/*/state", str(tmp_path))
    assert found == {f"{tmp_path}/a/state": "4: ACTIVE"}
