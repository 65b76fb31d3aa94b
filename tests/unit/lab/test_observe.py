"""The state of machines, read from groups of real processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_install.lab import names, observe
from pai_install.lab.cgroups import Hierarchy
from pai_install.lab.faults import Fault
from pai_install.lab.names import lab_names
from pai_install.lab.observe import status
from pai_install.lab.record import LabRecord, Ledger
from pai_install.lab.spec import LabSpec


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(names, "LABS_DIR", tmp_path / "labs")
    monkeypatch.setattr(observe, "present_faults", lambda _spec, _one: ())
    monkeypatch.setattr(observe, "box_hierarchies", lambda: (Hierarchy(tmp_path / "cgroup", unified=False),))
    return tmp_path / "cgroup/pai-lab-172-30-79-0"


@pytest.fixture
def lab(spec: LabSpec, tree: Path) -> LabSpec:
    """A lab on record of which no machine runs."""
    Ledger(lab_names(spec).record, LabRecord(lab_names(spec).lab, str(spec.state_dir))).add([])
    return spec


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child.pid
        child.kill()


def runs(folder: Path, pid: int) -> None:
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text(f"{pid}\n")
    (folder / "memory.usage_in_bytes").write_text("1048576\n")


def test_a_lab_that_was_never_made_is_absent(spec: LabSpec, tree: Path) -> None:
    found = status(spec)
    assert {machine.state for machine in found.machines} == {"absent"}
    assert not found.all_running


def test_machines_without_processes_are_stopped(lab: LabSpec) -> None:
    assert [machine.state for machine in status(lab).machines] == ["stopped", "stopped"]


def test_a_machine_with_processes_runs(lab: LabSpec, tree: Path, sleeper: int) -> None:
    runs(tree / "two", sleeper)
    one, two = status(lab).machines
    assert (one.state, one.memory_bytes, one.uptime_s) == ("stopped", None, None)
    assert (two.state, two.memory_bytes, two.address) == ("running", 1048576, "172.30.79.12")
    assert two.uptime_s is not None
    assert 0 <= two.uptime_s < 60
    assert not status(lab).all_running


def test_all_running_without_faults_is_ok(
    lab: LabSpec, tree: Path, sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        runs(tree / name, sleeper)
    assert status(lab).all_running
    monkeypatch.setattr(observe, "present_faults", lambda _spec, one: (Fault.NET_CUT,) if one.name == "two" else ())
    found = status(lab)
    assert not found.all_running
    assert found.machines[1].faults == ("net-cut",)


def test_version_2_memory(lab: LabSpec, tree: Path, sleeper: int) -> None:
    runs(tree / "one", sleeper)
    (tree / "one/memory.usage_in_bytes").rename(tree / "one/memory.current")
    assert status(lab).machines[0].memory_bytes == 1048576


def test_document(lab: LabSpec) -> None:
    document = status(lab).document()
    assert document["schema_version"] == 1
    assert document["ok"] is False
    assert document["lab"] == "172-30-79-0"
    assert document["machines"][0] == {
        "name": "one",
        "address": "172.30.79.11",
        "state": "stopped",
        "memory_bytes": None,
        "uptime_s": None,
        "faults": (),
        "suite": "",
        "mixins": (),
    }
