"""Control groups on boxes of version 1, hybrid and 2, acted out on folders."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pai_install.lab import cgroups
from pai_install.lab.cgroups import Hierarchy, MachineCgroups, hierarchies, is_legacy, lab_folders, machine_cgroups

HYBRID = """proc /proc proc rw 0 0
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
"""
UNIFIED = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"


def test_trees_of_a_hybrid_box() -> None:
    trees = hierarchies(HYBRID)
    assert [(tree.path.name, tree.unified, tree.governs) for tree in trees] == [
        ("memory", False, True),
        ("systemd", False, True),
        ("unified", True, False),
    ]
    assert is_legacy(trees)


def test_tree_of_a_version_2_box() -> None:
    trees = hierarchies(UNIFIED)
    assert trees == (Hierarchy(Path("/sys/fs/cgroup"), unified=True, governs=True),)
    assert not is_legacy(trees)


def test_a_box_without_control_groups_has_none() -> None:
    assert hierarchies("proc /proc proc rw 0 0\n\nshort line\n") == ()


def test_a_tree_mounted_twice_at_one_place_counts_once() -> None:
    assert len(hierarchies(UNIFIED + UNIFIED)) == 1


def test_version_1_keeper_and_machine_share_their_groups() -> None:
    groups = machine_cgroups(hierarchies(HYBRID), "l", "m")
    assert groups.keeper == groups.machine
    assert Path("/sys/fs/cgroup/memory/pai-lab-l/m/cgroup.procs") in groups.machine
    assert groups.passing == ()
    assert groups.own == tuple(path.parent for path in groups.machine)


def test_version_2_keeper_sits_beside_the_machine_because_a_passing_group_holds_no_process() -> None:
    groups = machine_cgroups(hierarchies(UNIFIED), "l", "m")
    assert groups.machine == (Path("/sys/fs/cgroup/pai-lab-l/m/cgroup.procs"),)
    assert groups.keeper == (Path("/sys/fs/cgroup/pai-lab-l/m.keeper/cgroup.procs"),)
    assert groups.passing == (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/pai-lab-l"))


def test_parents_come_before_children() -> None:
    for text in (HYBRID, UNIFIED):
        folders = machine_cgroups(hierarchies(text), "l", "m").folders
        for number, folder in enumerate(folders):
            assert folder.parent in folders[:number] or folder.name.startswith("pai-lab-")


def test_machines_of_a_lab_are_below_the_labs_own_groups() -> None:
    trees = hierarchies(HYBRID)
    tops = lab_folders(trees, "l")
    assert all(any(own.is_relative_to(top) for top in tops) for own in machine_cgroups(trees, "l", "m").own)


def test_version_1_cpuset_copies_its_parents_cpus_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    real = Path.mkdir

    def mkdir(self: Path, *args: object, **options: bool) -> None:
        real(self, **options)  # the kernel fills a new cpuset group with empty files
        for name in ("cpuset.cpus", "cpuset.mems"):
            (self / name).touch()
        made.append(self)

    (tmp_path / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpuset.mems").write_text("0\n")
    monkeypatch.setattr(Path, "mkdir", mkdir)
    cgroups.make(machine_cgroups([Hierarchy(tmp_path, unified=False)], "l", "m"))
    assert made == [tmp_path / "pai-lab-l", tmp_path / "pai-lab-l/m"]
    assert (tmp_path / "pai-lab-l/m/cpuset.cpus").read_text() == "0-1\n"
    assert (tmp_path / "pai-lab-l/m/cpuset.mems").read_text() == "0\n"


def test_version_2_passes_only_missing_controllers_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[tuple[str, str]] = []
    lab = tmp_path / "pai-lab-l"
    for folder, control in ((tmp_path, "cpu memory\n"), (lab, "")):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("cpu memory pids\n")
        (folder / "cgroup.subtree_control").write_text(control)
    real = Path.write_text

    def write_text(self: Path, text: str) -> int:
        writes.append((self.parent.name, text))
        if text == "+cpu":
            raise OSError("busy")  # one that cannot be passed on does not stop the others
        return real(self, text)

    monkeypatch.setattr(Path, "write_text", write_text)
    cgroups.make(machine_cgroups([Hierarchy(tmp_path, unified=True)], "l", "m"))
    assert [text for folder, text in writes if folder == tmp_path.name] == ["+pids"]
    assert [text for folder, text in writes if folder == "pai-lab-l"] == ["+cpu", "+memory", "+pids"]


def test_members_are_counted_in_groups_below_too(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "cgroup.procs").write_text("1\n2\n")
    (tmp_path / "a/b/cgroup.procs").write_text("3\n0\n")
    assert cgroups.members(tmp_path) == {1, 2, 3}
    assert cgroups.members(tmp_path / "gone") == set()


def test_groups_that_go_while_members_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods come and go: their groups vanish between being listed and being looked into."""
    (tmp_path / "pods/gone").mkdir(parents=True)
    (tmp_path / "cgroup.procs").write_text("1\n")
    really = os.scandir

    def scandir(path: str | Path) -> object:
        if str(path).endswith("gone"):
            raise FileNotFoundError(path)
        return really(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert cgroups.members(tmp_path) == {1}


@pytest.mark.parametrize(("name", "run", "stop"), [("freezer.state", "THAWED", "FROZEN"), ("cgroup.freeze", "0", "1")])
def test_freezing_and_thawing(tmp_path: Path, name: str, run: str, stop: str) -> None:
    switch = tmp_path / name
    switch.write_text(f"{run}\n")
    assert not cgroups.is_frozen(tmp_path)
    assert cgroups.freeze(tmp_path, frozen=True)
    assert switch.read_text() == stop
    assert cgroups.is_frozen(tmp_path)
    cgroups.thaw(tmp_path)
    assert switch.read_text() == run
    assert not cgroups.is_frozen(tmp_path)


def test_a_tree_without_a_freezer_says_so(tmp_path: Path) -> None:
    assert not cgroups.freeze(tmp_path, frozen=True)
    assert not cgroups.is_frozen(tmp_path)


def test_removing_goes_from_the_leaves_and_twice_is_fine(tmp_path: Path) -> None:
    (tmp_path / "lab/m/system.slice/x.service").mkdir(parents=True)
    cgroups.remove(tmp_path / "lab")
    cgroups.remove(tmp_path / "lab")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - the names alone


def test_removing_waits_for_a_group_that_is_still_busy(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    (lab / "m").mkdir(parents=True)
    (lab / "m/busy").touch()  # a folder with a file in it refuses rmdir as a group with processes does
    threading.Timer(0.2, (lab / "m/busy").unlink).start()
    cgroups.remove(lab, timeout_s=5)
    assert not lab.exists()


def test_removing_gives_up_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "busy").touch()
    with pytest.raises(OSError, match="not empty"):
        cgroups.remove(tmp_path, timeout_s=0.1)


def test_own_groups_are_named_once() -> None:
    groups = MachineCgroups(
        (), keeper=(Path("/a/cgroup.procs"),), machine=(Path("/a/cgroup.procs"), Path("/b/cgroup.procs"))
    )
    assert groups.own == (Path("/a"), Path("/b"))
