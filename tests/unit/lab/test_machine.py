"""The nspawn command line, the script that keeps a machine running, and ending processes for real."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pai_install.lab import machine
from pai_install.lab.cgroups import MachineCgroups
from pai_install.lab.machine import Process, keeper_script, nspawn_command, start_time
from pai_install.lab.names import MachineNames
from pai_install.lab.spec import LabSpec


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child
        child.kill()


def group_of(folder: Path, *pids: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    return folder


def test_machine_boots_in_its_own_namespace_with_its_name_and_folders(spec: LabSpec, names: MachineNames) -> None:
    words = nspawn_command(spec.machines[0], names, legacy_cgroups=True)
    assert words[0] == "systemd-nspawn"
    assert f"--directory={names.root}" in words
    assert "--network-namespace-path=/run/netns/pai-172.30.79.11" in words
    assert "--hostname=one" in words
    for folder in ("docker", "containerd", "kubelet", "etcd"):
        assert f"--bind={names.data}/{folder}:/var/lib/{folder}" in words
    assert not [word for word in words if "/storage" in word]
    assert {"--boot", "--register=no", "--keep-unit", "--capability=all"} <= set(words)


def test_what_a_machine_serves_is_no_overlay(spec: LabSpec, names: MachineNames) -> None:
    serving = replace(spec.machines[0], storage="/srv/share")
    assert f"--bind={names.data}/storage:/srv/share" in nspawn_command(serving, names, legacy_cgroups=True)


def test_only_version_1_boxes_force_old_control_groups(spec: LabSpec, names: MachineNames) -> None:
    forced = "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
    assert nspawn_command(spec.machines[0], names, legacy_cgroups=True)[-1] == forced
    assert forced not in nspawn_command(spec.machines[0], names, legacy_cgroups=False)


def run_script(tmp_path: Path, command: list[str]) -> tuple[int, Path, Path]:
    keeper, inner = tmp_path / "keeper procs", tmp_path / "machine"
    groups = MachineCgroups((), (keeper,), (inner,))
    script = tmp_path / "start.sh"
    script.write_text(keeper_script(command, groups))
    return subprocess.run(["sh", script], check=False, timeout=60).returncode, keeper, inner


def test_script_enters_its_groups_before_the_machine_starts(tmp_path: Path) -> None:
    code, keeper, inner = run_script(tmp_path, ["test", "-s", str(tmp_path / "machine")])
    assert code == 0
    assert keeper.read_text() == inner.read_text() == "0\n"  # 0: whoever writes it moves


def test_script_starts_a_machine_again_only_when_it_rebooted(tmp_path: Path) -> None:
    counter = tmp_path / "boots"
    boot = f"echo boot >> {shlex.quote(str(counter))}; [ $(wc -l < {shlex.quote(str(counter))}) -ge 3 ] || exit 133"
    run_script(tmp_path, ["sh", "-c", boot])
    assert counter.read_text().count("boot") == 3


def test_script_ends_when_the_machine_powers_off(tmp_path: Path) -> None:
    counter = tmp_path / "boots"
    code, _, _ = run_script(tmp_path, ["sh", "-c", f"echo boot >> {shlex.quote(str(counter))}; exit 1"])
    assert code == 0
    assert counter.read_text() == "boot\n"


def test_process_survives_being_written_down() -> None:
    process = Process(12, 345)
    assert Process.parse(str(process)) == process


def test_a_process_is_alive_only_with_its_own_start_time(sleeper: subprocess.Popen[bytes]) -> None:
    started = start_time(sleeper.pid)
    assert started is not None
    assert Process(sleeper.pid, started).alive
    assert not Process(sleeper.pid, started - 1).alive  # the number was given to another process


def test_zombies_and_strangers_are_not_alive(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # dead, and not reaped
    assert start_time(sleeper.pid) is None
    assert start_time(2**22 + 1) is None


def test_killing_ends_keeper_and_members(tmp_path: Path) -> None:
    # reaped by a thread of theirs, as the box's first process would
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
    try:
        keeper = Process(children[0].pid, start_time(children[0].pid) or 0)
        groups = [group_of(tmp_path / "a", children[1].pid), group_of(tmp_path / "b/c", children[2].pid)]
        machine.kill([keeper], groups)
        assert [child.wait(60) for child in children] == [-9, -9, -9]
    finally:
        for child in children:
            child.kill()


def test_killing_leaves_a_process_that_only_has_the_keepers_number(sleeper: subprocess.Popen[bytes]) -> None:
    machine.kill([Process(sleeper.pid, 1)], [])
    assert sleeper.poll() is None


def test_killing_thaws_what_is_frozen(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    group = group_of(tmp_path / "g", sleeper.pid)
    (group / "freezer.state").write_text("FROZEN")
    machine.kill([], [group])
    assert (group / "freezer.state").read_text() == "THAWED"


def test_killing_ends_all_at_one_moment(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = group_of(tmp_path / "g", sleeper.pid)
    (group / "freezer.state").write_text("THAWED")
    states: list[str] = []

    def end(_pid: int) -> None:
        states.append((group / "freezer.state").read_text())
        sleeper.kill()

    monkeypatch.setattr(machine, "_signal", end)
    machine.kill([], [group])
    assert set(states) == {"FROZEN"}


def test_killing_gives_up_on_what_does_not_end(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_signal", lambda _pid: None)
    with pytest.raises(TimeoutError, match=str(sleeper.pid)):
        machine.kill([], [group_of(tmp_path / "g", sleeper.pid)], timeout_s=0.1)


def test_a_machine_runs_while_its_groups_have_members(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    group = group_of(tmp_path / "g", sleeper.pid)
    groups = MachineCgroups((), (), (group / "cgroup.procs",))
    assert machine.is_running(groups)
    group_of(group)
    assert not machine.is_running(groups)


def test_started_keeper_outlives_the_caller_and_logs_to_the_console(names: MachineNames) -> None:
    names.folder.mkdir(parents=True)
    process = machine.start(names, "echo booting; echo oops >&2; exec sleep 60\n")
    try:
        assert process.alive
        deadline = time.monotonic() + 60
        while "oops" not in names.console.read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert names.console.read_text() == "booting\noops\n"
        assert os.getsid(process.pid) == process.pid
    finally:
        os.kill(process.pid, 9)
        os.waitpid(process.pid, 0)
