"""Faults: made from the box's side, seen on the box, taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.lab import disk, faults, machine, names
from pai_install.lab.cgroups import Hierarchy
from pai_install.lab.faults import Fault, clear, inject, present_faults
from pai_install.lab.names import machine_names
from pai_install.lab.spec import LabMachine, LabSpec
from tests.errors import raises


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """The freezer group of machine `one`."""
    folder = tmp_path / "cgroup/pai-lab-172-30-79-0/one"
    folder.mkdir(parents=True)
    (folder / "freezer.state").write_text("THAWED\n")
    return folder


@pytest.fixture
def asked(tmp_path: Path, group: Path, monkeypatch: pytest.MonkeyPatch, stand_in: Any) -> Any:
    monkeypatch.setattr(names, "LABS_DIR", tmp_path / "labs")
    monkeypatch.setattr(faults, "box_hierarchies", lambda: (Hierarchy(tmp_path / "cgroup", unified=False),))
    monkeypatch.setattr(faults, "require_root", lambda: None)
    monkeypatch.setattr(faults, "INTERFACES", tmp_path / "net")
    flags = tmp_path / "net/pv-ac1e4f0b/flags"
    flags.parent.mkdir(parents=True)
    flags.write_text("0x1003\n")
    return stand_in(faults)


@pytest.fixture
def one(spec: LabSpec) -> LabMachine:
    return spec.machines[0]


def test_a_healthy_machine_has_none(spec: LabSpec, one: LabMachine, asked: Any) -> None:
    assert present_faults(spec, one) == ()


def test_pause_freezes_and_is_seen_and_healed(spec: LabSpec, one: LabMachine, asked: Any, group: Path) -> None:
    inject(spec, one, Fault.PAUSE)
    assert (group / "freezer.state").read_text() == "FROZEN"
    assert present_faults(spec, one) == (Fault.PAUSE,)
    assert clear(spec, one) == ("pause",)
    assert present_faults(spec, one) == ()


def test_pause_needs_a_freezer(spec: LabSpec, one: LabMachine, asked: Any, group: Path) -> None:
    (group / "freezer.state").unlink()
    with raises("lab-fault-impossible") as caught:
        inject(spec, one, Fault.PAUSE)
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED


def test_cut_network_is_the_boxs_end_of_the_cable(
    spec: LabSpec, one: LabMachine, asked: Any, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    inject(spec, one, Fault.NET_CUT)
    assert asked.commands == snapshot
    (tmp_path / "net/pv-ac1e4f0b/flags").write_text("0x1002\n")
    assert present_faults(spec, one) == (Fault.NET_CUT,)
    clear(spec, one)
    assert asked.commands[-1] == snapshot


def test_slow_network_slows_both_directions(
    spec: LabSpec, one: LabMachine, asked: Any, snapshot: SnapshotAssertion
) -> None:
    said = inject(spec, one, Fault.SLOW_NET)
    assert "100 ms" in said
    assert asked.commands == snapshot


def test_a_kernel_without_netem_limits_the_rate_and_says_so(spec: LabSpec, one: LabMachine, asked: Any) -> None:
    asked.answer("tc qdisc replace dev pv-ac1e4f0b root netem", 2)
    assert "no netem" in inject(spec, one, Fault.SLOW_NET)
    assert "tbf" in asked.commands[-1]


def test_a_kernel_without_either_refuses(spec: LabSpec, one: LabMachine, asked: Any) -> None:
    asked.answer("tc", 2)
    with raises("lab-fault-impossible"):
        inject(spec, one, Fault.SLOW_NET)


@pytest.mark.parametrize("queue", ["qdisc netem 8001: root refcnt 2 limit 1000", "qdisc tbf 8002: root rate 1Mbit"])
def test_slow_network_is_seen_and_healed(spec: LabSpec, one: LabMachine, asked: Any, queue: str) -> None:
    asked.answer("tc qdisc show", stdout=queue)
    assert present_faults(spec, one) == (Fault.SLOW_NET,)
    clear(spec, one)
    assert asked.matching("tc qdisc del dev pv-ac1e4f0b root")
    assert asked.matching("tc -netns pai-172.30.79.11 qdisc del dev eth0 root")


def test_full_disk_is_seen_and_healed(
    spec: LabSpec, one: LabMachine, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler = disk.filler(machine_names(spec, one))

    def fill(_names: names.MachineNames) -> bool:
        filler.parent.mkdir(parents=True)
        filler.touch()
        return True

    monkeypatch.setattr(disk, "fill", fill)
    inject(spec, one, Fault.DISK_FULL)
    assert present_faults(spec, one) == (Fault.DISK_FULL,)
    assert clear(spec, one) == ("disk-full",)
    assert not filler.exists()


def test_the_boxs_own_disk_is_never_filled(spec: LabSpec, one: LabMachine, asked: Any) -> None:
    with raises("lab-fault-impossible"):
        inject(spec, one, Fault.DISK_FULL)


def test_power_off_ends_only_that_machines_processes(
    spec: LabSpec, one: LabMachine, asked: Any, group: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[list[Path]] = []
    monkeypatch.setattr(machine, "kill", lambda _keepers, folders: killed.append(list(folders)))
    inject(spec, one, Fault.POWER_OFF)
    assert killed == [[group]]


def test_several_faults_at_once(spec: LabSpec, one: LabMachine, asked: Any, group: Path, tmp_path: Path) -> None:
    (group / "freezer.state").write_text("FROZEN")
    (tmp_path / "net/pv-ac1e4f0b/flags").write_text("0x1002\n")
    assert clear(spec, one) == ("pause", "net-cut")


def test_every_fault_can_be_made() -> None:
    assert set(faults._INJECTORS) == set(Fault)


def test_a_machine_that_was_never_made_has_no_faults(spec: LabSpec, asked: Any) -> None:
    assert present_faults(spec, spec.machines[1]) == ()
    assert asked.commands == []
