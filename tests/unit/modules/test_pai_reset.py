"""Parts of a reset that decide: packages, mounts, packet filters."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ansible_path import module_util

from .conftest import Run

NAMES = st.sets(st.sampled_from(["chrony", "docker.io", "haproxy", "socat", "admins"]))


@pytest.fixture
def packages() -> Any:
    return module_util("pai_packages")


@pytest.fixture
def remains() -> Any:
    return module_util("pai_node_remains")


@given(recorded=NAMES, there=NAMES, before=NAMES, pulled=st.dictionaries(st.sampled_from(["chrony", "socat"]), NAMES))
def test_no_package_goes_that_was_there_or_takes_another_with_it(
    packages: Any, recorded: set[str], there: set[str], before: set[str], pulled: dict[str, set[str]]
) -> None:
    """pulled: package -> those that need it, and go with it."""

    def simulate(names: Collection[str]) -> set[str]:
        return {*names, *(other for name in names for other in pulled.get(name, ()) if other in there)}

    gone = packages.removable(sorted(recorded), there, before, simulate)
    assert not {*gone} & before
    assert {*gone} <= recorded & there
    assert simulate(gone) == {*gone}


def test_what_apt_would_remove_is_read(packages: Any) -> None:
    said = "Reading package lists...\nRemv haproxy [3.0.11-1]\nPurg socat:amd64 [1.8]\nInst other (1)\n"
    assert packages.removed_in(said) == {"haproxy", "socat"}


def test_mounts_below_a_folder_innermost_first(remains: Any) -> None:
    table = """\
20 1 0:1 / / rw - ext4 /dev/sda rw
21 20 0:2 / /var/lib/kubelet rw - ext4 /dev/sdb rw
22 21 0:3 / /var/lib/kubelet/pods/a/volumes/x rw - tmpfs tmpfs rw
23 21 0:4 / /var/lib/kubelet/pods/a/volumes/x/sub\\040dir rw - nfs server:/x rw
24 20 0:5 / /var/lib/kubelet-other rw - ext4 /dev/sdc rw
"""
    assert remains.mounts_below("/var/lib/kubelet", table) == [
        "/var/lib/kubelet/pods/a/volumes/x/sub dir",
        "/var/lib/kubelet/pods/a/volumes/x",
    ]


def test_a_folder_with_a_mount_below_is_not_deleted(
    remains: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pods").mkdir()
    monkeypatch.setattr(remains, "_mountinfo", lambda: f"1 1 0:1 / {tmp_path}/pods rw - nfs server:/x rw")
    with pytest.raises(remains.RemainsError, match="is mounted, so nothing"):
        remains.remove_folder(str(tmp_path))
    assert (tmp_path / "pods").is_dir()


def test_a_folder_goes_with_links_but_not_what_they_lead_to(remains: Any, tmp_path: Path) -> None:
    target = tmp_path / "of-people"
    target.mkdir()
    folder = tmp_path / "kubelet"
    (folder / "pods").mkdir(parents=True)
    (folder / "pods" / "link").symlink_to(target)
    remains.remove_folder(str(folder))
    assert not folder.exists()
    assert target.is_dir()


def test_rules_of_others_stay(remains: Any) -> None:
    saved = """\
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -s 10.200.0.0/16 -m comment --comment "pai-install" -j ACCEPT
-A FORWARD -s 10.200.0.0/16 -m comment --comment pai-install -j ACCEPT
-A KUBE-FIREWALL -m mark --mark 0x8000 -j DROP
COMMIT
"""
    assert remains.without_chains(saved).splitlines() == [
        "*filter", ":INPUT ACCEPT [0:0]", ":FORWARD DROP [0:0]", ":DOCKER - [0:0]",
        "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT", "-A FORWARD -o docker0 -j DOCKER", "COMMIT",
    ]  # fmt: skip


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """pai_origins on a machine of its own."""
    origins = module_util("pai_origins")
    for name, path in (("ORIGINS", "origins.json"), ("ROLES_DIR", "roles"), ("STATE_DIR", "")):
        monkeypatch.setattr(origins, name, str(tmp_path / path))
    return origins


def test_notes_begin_once_and_on_a_new_machine_only(notes: Any, run_module: Run, tmp_path: Path) -> None:
    assert run_module("pai_origins", check=True)["begun"]
    assert notes.origins() is None
    first = run_module("pai_origins")
    assert (first["begun"], first["changed"]) == (True, False)
    assert notes.origins()["packages"]
    assert not run_module("pai_origins")["begun"]
    Path(notes.ORIGINS).unlink()
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "base.json").touch()
    assert not run_module("pai_origins")["begun"], "an older version changed the machine already"
    notes.note("files", "/etc/x", "")
    assert notes.origins() is None


def test_the_first_note_counts(notes: Any) -> None:
    notes.begin({})
    notes.note("files", "/etc/x", "/etc/x.copy")
    notes.note("files", "/etc/x", "")
    assert notes.origins()["files"] == {"/etc/x": "/etc/x.copy"}
