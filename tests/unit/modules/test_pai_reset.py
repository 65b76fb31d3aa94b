"""Parts of a reset that decide: packages, mounts, packet filters."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

from .conftest import ModuleFailedError, Run

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


def test_held_packages_can_go_and_a_suggestion_is_no_need(packages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def command(argv: list[str], _timeout_s: float) -> tuple[int, str]:
        asked.append(" ".join(argv))
        return 0, "Remv nvidia-smi [550]\n"

    monkeypatch.setattr(packages, "command", command)
    assert packages.simulated(["nvidia-smi"]) == packages.unneeded() == {"nvidia-smi"}
    packages.remove(["nvidia-smi"], purge=True)
    simulation, question, removal = asked
    assert packages.HELD_TOO in simulation
    assert packages.HELD_TOO in removal
    assert packages.NEEDS_ALONE in question
    assert packages.install(["bc"])
    # services of the admin's go on, whatever needrestart would do
    assert all(" NEEDRESTART_SUSPEND=1 apt-get " in one for one in (removal, asked[-1]))


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


def test_rules_of_others_stay(remains: Any, snapshot: SnapshotAssertion) -> None:
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
    assert remains.without_chains(saved).splitlines() == snapshot


def test_rules_of_docker_go_with_it_and_no_others(remains: Any, snapshot: SnapshotAssertion) -> None:
    saved = """\
*filter
:FORWARD ACCEPT [0:0]
:DOCKER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:ADMINS - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i br-lan -j ADMINS
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
-A POSTROUTING -s 172.18.0.0/16 ! -o br-0123456789ab -j MASQUERADE
-A POSTROUTING -s 10.0.0.0/8 -o eth0 -j MASQUERADE
COMMIT
"""
    assert remains.without_docker(saved).splitlines() == snapshot


def test_what_a_package_only_suggests_is_not_needed(packages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd suggests libp11-kit0, which came with chrony."""
    asked: list[str] = []

    def apt(argv: Collection[str], _limit_s: float) -> tuple[int, str]:
        asked.extend(argv)
        return 0, "Remv libp11-kit0 [0.25]\n"

    monkeypatch.setattr(packages, "command", apt)
    assert packages.unneeded() == {"libp11-kit0"}
    assert "--option=APT::AutoRemove::SuggestsImportant=false" in asked


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


class StandIn:
    """A machine for the module: units, packages and remains in memory, files below a folder. did: what was run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.did: list[str] = []
        self.running = {"kubelet.service", "containerd.service", "pai-api-proxy.service", "docker.service"}
        self.pods = ["p1", "p2"]
        self.packages = {"socat", "docker.io", "admins"}

    def unit_state(self, name: str) -> dict[str, str]:
        """As systemctl shows it."""
        on = name in self.running
        return {
            "ActiveState": "active" if on else "inactive",
            "UnitFileState": "enabled" if on else "disabled",
            "LoadState": "loaded" if on or name == "docker.service" else "not-found",
        }

    def command(self, argv: Any, timeout_s: float = 5.0) -> tuple[int, str]:
        """Runs nothing but in memory."""
        del timeout_s
        self.did.append(" ".join(argv))
        if "disable" in argv:
            self.running -= {argv[-1]}
        return 0, ""

    def remove_pods(self) -> None:
        self.did.append("remove pods")
        self.pods.clear()

    def remove(self, names: Collection[str], *, purge: bool) -> None:
        self.did += [f"{'purge' if purge else 'remove'} {name}" for name in sorted(names)]
        self.packages -= {*names}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, notes: Any) -> StandIn:
    """A node with records of two roles; what was there before is noted."""
    made = StandIn(tmp_path)
    ours = tmp_path / "ours.conf"
    ours.write_text("ours")
    managed, packages, remains = (module_util(name) for name in ("pai_managed", "pai_packages", "pai_node_remains"))
    for name, value in (("ROLES_DIR", str(tmp_path / "state" / "roles")), ("STATE_DIR", str(tmp_path / "state"))):
        monkeypatch.setattr(managed, name, value)
        monkeypatch.setattr(notes, name, value)
    monkeypatch.setattr(notes, "ORIGINS", str(tmp_path / "state" / "origins.json"))
    monkeypatch.setattr(managed, "unit_state", made.unit_state)
    monkeypatch.setattr(module_util("pai_machine"), "command", made.command)
    nothing: dict[str, Any] = dict.fromkeys(("folders", "empty_folders", "interfaces", "tables", "chains"), list)
    in_memory: dict[str, Any] = {"pods": lambda: list(made.pods), "remove_pods": made.remove_pods}
    for attribute, stand_in in {**nothing, **in_memory, "mounts_below": lambda _folder: []}.items():
        monkeypatch.setattr(remains, attribute, stand_in)
    of_apt: dict[str, Any] = {"installed": lambda: dict.fromkeys(made.packages, "1"), "remove": made.remove}
    for attribute, stand_in in {**of_apt, "simulated": set, "unneeded": set, "install": lambda _names: True}.items():
        monkeypatch.setattr(packages, attribute, stand_in)
    notes.begin({"admins": "1"})
    unit = {"kind": "file", "path": "/etc/systemd/system/pai-api-proxy.service", "sha256": "", "mode": "0644"}
    file = {"kind": "file", "path": str(ours), "sha256": "", "mode": "0644"}
    managed.write_record(
        "base", {}, [file, {"kind": "package", "name": "socat"}, {"kind": "package", "name": "admins"}]
    )
    managed.write_record("container_runtime", {}, [unit, {"kind": "package", "name": "docker.io"}])
    monkeypatch.setattr(
        "os.path.isdir", lambda path, isdir=Path.is_dir: path == "/var/lib/kubelet" or isdir(Path(path))
    )
    return made


def test_kubelet_first_then_its_pods_then_our_units_and_records_last(machine: StandIn, run_module: Run) -> None:
    actions = run_module("pai_reset")["actions"]
    assert actions[:2] == ["stopped kubelet.service", "removed 2 pods"]
    assert actions.index("stopped pai-api-proxy.service") < actions.index(f"removed {machine.folder / 'ours.conf'}")
    assert actions[-1] == "removed the records"
    assert not (machine.folder / "state").exists()


def test_packages_of_before_stay_and_those_with_data_are_not_purged(machine: StandIn, run_module: Run) -> None:
    run_module("pai_reset")
    assert machine.packages == {"admins"}
    assert {"remove docker.io", "purge socat"} <= set(machine.did)


def test_what_came_with_them_goes_unless_it_takes_another_along(
    machine: StandIn, run_module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.packages |= {"libfree", "libneeded", "loose", "later"}
    packages = module_util("pai_packages")

    def unneeded() -> set[str]:
        return ({"loose"} if "socat" in machine.packages else {"loose", "libfree", "libneeded"}) & machine.packages

    monkeypatch.setattr(packages, "unneeded", unneeded)
    monkeypatch.setattr(
        packages, "simulated", lambda names: {*names, *(["later"] if "libneeded" in names else [])} & machine.packages
    )
    run_module("pai_reset")
    assert machine.packages == {"admins", "libneeded", "loose", "later"}


def test_packages_go_with_their_data_where_that_is_asked_for(machine: StandIn, run_module: Run) -> None:
    run_module("pai_reset", data=True)
    assert "purge docker.io" in machine.did


def test_docker_that_was_there_before_is_not_stopped(machine: StandIn, run_module: Run, notes: Any) -> None:
    """Another package of the runtime's role goes, and Docker with its containers and packet filters stays."""
    Path(notes.ORIGINS).unlink()
    notes.begin({"admins": "1", "docker.io": "1"})
    managed = module_util("pai_managed")
    packages = [{"kind": "package", "name": name} for name in ("docker.io", "nvidia-container-toolkit")]
    managed.write_record("container_runtime", {}, packages)
    machine.packages.add("nvidia-container-toolkit")
    run_module("pai_reset")
    assert machine.packages == {"admins", "docker.io"}
    assert "docker.service" in machine.running
    assert not [line for line in machine.did if line.startswith("docker stop") or "docker.socket" in line]


def test_docker_goes_with_its_packet_filters(
    machine: StandIn, run_module: Run, monkeypatch: pytest.MonkeyPatch, remains: Any
) -> None:
    monkeypatch.setattr(remains, "remove_docker_filters", lambda: machine.did.append("filters of Docker"))
    run_module("pai_reset")
    assert machine.did.index("filters of Docker") < machine.did.index("remove docker.io")


def test_without_notes_all_packages_stay_and_are_named(
    machine: StandIn, run_module: Run, notes: Any, snapshot: SnapshotAssertion
) -> None:
    Path(notes.ORIGINS).unlink()
    kept = run_module("pai_reset")["kept"]
    assert machine.packages == {"socat", "docker.io", "admins"}
    assert [line for line in kept if "socat" in line] == snapshot


def test_check_mode_says_what_would_go_and_touches_nothing(machine: StandIn, run_module: Run) -> None:
    said = run_module("pai_reset", check=True)
    assert said["changed"]
    assert "removed the records" in said["actions"]
    assert (machine.folder / "ours.conf").exists()
    assert (machine.folder / "state" / "roles" / "base.json").exists()
    assert not [line for line in machine.did if "disable" in line or "purge" in line]


def test_a_second_time_there_is_nothing_to_do(machine: StandIn, run_module: Run) -> None:
    run_module("pai_reset")
    assert run_module("pai_reset") == {**run_module("pai_reset"), "changed": False, "actions": []}


def test_what_is_in_the_way_is_named_and_the_records_stay(
    machine: StandIn, run_module: Run, monkeypatch: pytest.MonkeyPatch, remains: Any
) -> None:
    def stuck() -> None:
        raise remains.RemainsError("2 pods do not stop: p1 p2")

    monkeypatch.setattr(remains, "remove_pods", stuck)
    with pytest.raises(ModuleFailedError, match="the machine is not clean: 2 pods do not stop"):
        run_module("pai_reset")
    assert (machine.folder / "state" / "roles" / "base.json").exists()
