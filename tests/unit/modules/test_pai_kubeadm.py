"""What kubeadm's module decides by: its marker, what is left, and answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def kubeadm(library: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with its folders in tmp_path."""
    module = library("pai_kubeadm")
    monkeypatch.setattr(module, "STATE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "MARKER", str(tmp_path / "kubeadm.json"))
    return module


def test_the_marker_says_how_a_machine_came_in(kubeadm: Any) -> None:
    assert kubeadm.marker() == {}
    kubeadm.set_marker("join-control-plane", done=False)
    assert kubeadm.marker() == {"state": "join-control-plane", "done": False}
    assert not kubeadm.is_member("join-control-plane")


@pytest.mark.parametrize(
    ("state", "left", "member"),
    [
        ("init", ("admin.conf", "kubelet.conf", "member"), True),
        ("init", ("kubelet.conf", "member"), True),
        ("init", ("member",), True),
        ("join-control-plane", ("member",), True),
        ("init", ("admin.conf",), True),
        ("init", ("kubelet.conf",), False),
        ("join", ("kubelet.conf",), True),
        ("join", ("member",), False),
    ],
)
def test_a_control_plane_with_its_data_is_never_begun_again(
    kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, left: tuple[str, ...], member: bool
) -> None:
    """Whoever deletes admin.conf must not lose the cluster by the next apply: beginning again empties etcd."""
    monkeypatch.setattr(kubeadm, "ADMIN_CONF", str(tmp_path / "admin.conf"))
    monkeypatch.setattr(kubeadm, "KUBELET_CONF", str(tmp_path / "kubelet.conf"))
    monkeypatch.setattr(kubeadm, "ETCD_DATA", str(tmp_path / "member"))
    for name in left:
        (tmp_path / name).write_text("")
    assert not kubeadm.is_member(state)
    kubeadm.set_marker(state, done=True)
    assert kubeadm.is_member(state) is member


@pytest.mark.parametrize("before", [True, False])
def test_a_machine_that_joins_again_does_so_without_its_old_pod_network(
    kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """A new node may get another range of addresses, which a bridge with an address of the old one refuses."""
    leases = tmp_path / "networks"
    leases.mkdir()
    for name in ("KUBELET_CONF", "ADMIN_CONF", "ETCD_DATA"):
        monkeypatch.setattr(kubeadm, name, str(tmp_path / name))
    monkeypatch.setattr(kubeadm, "RENDERED", (str(tmp_path / "none"),))
    monkeypatch.setattr(kubeadm, "ADDRESS_LEASES", str(leases))
    for name in ("enforce_modes", "keep_copies"):
        monkeypatch.setattr(kubeadm, name, lambda *_: None)
    if before:
        kubeadm.set_marker("join", done=True)
    commands: list[list[str]] = []

    def run(argv: list[str]) -> tuple[int, str, str]:
        commands.append(argv)
        return 0, "", ""

    params: dict[str, Any] = {"ignore_preflight_errors": [], "ready_url": "", "encryption_config": None, "login": {}}
    member = kubeadm.Member(SimpleNamespace(check_mode=False, params=params, run_command=run))
    member.enter("join")
    deleted = [argv[-1] for argv in commands if argv[:3] == ["ip", "link", "delete"]]
    assert deleted == (["cni0", "flannel.1"] if before else [])
    assert leases.exists() is not before


def entering(kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[list[str]]]:
    """A machine on its way in, and what it was told to run."""
    for name in ("KUBELET_CONF", "ADMIN_CONF", "ETCD_DATA", "ADDRESS_LEASES"):
        monkeypatch.setattr(kubeadm, name, str(tmp_path / name))
    monkeypatch.setattr(kubeadm, "RENDERED", (str(tmp_path / "none"),))
    for name in ("enforce_modes", "keep_copies"):
        monkeypatch.setattr(kubeadm, name, lambda *_: None)
    commands: list[list[str]] = []

    def run(argv: list[str]) -> tuple[int, str, str]:
        commands.append(argv)
        return 0, "", ""

    params: dict[str, Any] = {"ignore_preflight_errors": [], "ready_url": "", "encryption_config": None, "login": {}}
    return kubeadm.Member(SimpleNamespace(check_mode=False, params=params, run_command=run)), commands


@pytest.mark.parametrize("killed", [False, True])
def test_init_over_a_backup_is_never_begun_again_with_nothing(
    kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """kubeadm reset, or a deleted folder of etcd, would make an empty cluster of a restored one."""
    member, commands = entering(kubeadm, tmp_path, monkeypatch)
    kubeadm.set_marker("init", done=False, restored=True)
    if killed:
        (tmp_path / "ADMIN_CONF").write_text("")
        monkeypatch.setattr(member, "kubeadm", lambda *_words: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            member.enter("init")
        member, commands = entering(kubeadm, tmp_path, monkeypatch)
    member.enter("init")
    ((_program, verb, *_words, skipped),) = commands
    assert verb == "init"
    assert "DirAvailable--var-lib-etcd" in skipped
    assert "Port-6443" in skipped
    assert kubeadm.marker() == {"state": "init", "done": True}


def test_a_node_that_joins_again_waits_until_its_old_self_is_no_longer_ready(
    kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubeadm joins no node that is ready, as one of a restored cluster is for some time."""
    member, commands = entering(kubeadm, tmp_path, monkeypatch)
    ready, asked = [True, True, False], []

    def node_is_ready(node: str) -> bool:
        asked.append(node)
        assert not [argv for argv in commands if "join" in argv], "asked before it joins"
        return ready.pop(0)

    monkeypatch.setattr(kubeadm, "Kubectl", lambda _conf: SimpleNamespace(node_is_ready=node_is_ready))
    monkeypatch.setattr(kubeadm, "write_login", lambda *_words: None)
    monkeypatch.setattr(kubeadm.time, "sleep", lambda _seconds: None)
    member.module.params.update(login={"certificate": "c", "authority": "a", "endpoint": "e:1"}, name="m2")
    member.enter("join-control-plane")
    assert asked == ["m2"] * 3
    assert [argv[1] for argv in commands if "join" in argv] == ["join"]


@pytest.mark.parametrize("made", ["file", "folder"])
def test_missing_kubeconfigs_are_made_and_others_left(
    kubeadm: Any, kubeadm_files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    monkeypatch.setattr(kubeadm_files, "KUBERNETES", str(tmp_path))
    for name in ("kubelet", "controller-manager"):
        (tmp_path / f"{name}.conf").write_text("mine")
    # what the kubelet, or containerd, makes of one that is gone
    if made == "folder":
        (tmp_path / "scheduler.conf").mkdir()
    else:
        (tmp_path / "scheduler.conf").write_text("")
    restarted: list[str] = []
    monkeypatch.setattr(kubeadm, "restart_static_pod", restarted.append)
    calls: list[tuple[str, ...]] = []

    def make(*words: str) -> None:
        calls.append(words)
        path = tmp_path / "scheduler.conf"
        if made == "folder" and not path.exists():  # its container starts again at this moment
            path.mkdir()
        Path(words[-1], f"{words[3]}.conf").write_text(words[3])

    member = kubeadm.Member(None)
    member.kubeadm = make
    member.make_kubeconfigs("join-control-plane")
    assert [words[3] for words in calls] == ["admin", "scheduler"]
    assert member.actions == [f"made {tmp_path}/admin.conf", f"made {tmp_path}/scheduler.conf"]
    assert restarted == ["kube-admin", "kube-scheduler"]
    assert (tmp_path / "scheduler.conf").read_text() == "scheduler"
    assert (tmp_path / "kubelet.conf").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "admin.conf",
        "controller-manager.conf",
        "kubelet.conf",
        "scheduler.conf",
    ]
    assert kubeadm.kubeconfigs_of("join") == []


@pytest.fixture
def answers() -> Any:
    """A server on the controller host that gives the status in the path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(self.path.strip("/")))
            self.end_headers()
            self.wfile.write(b"[-]etcd failed")

        def log_message(self, *_words: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_api_is_ready_unready_or_silent(kubeadm: Any, answers: str) -> None:
    assert kubeadm.readiness(f"{answers}/200") == (True, "200")
    ready, said = kubeadm.readiness(f"{answers}/500")
    assert not ready
    assert said.startswith("500 ")
    assert "etcd failed" in said
    assert kubeadm.readiness("http://127.0.0.1:1/readyz") == (False, "")


@pytest.fixture
def kubelet(kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first control plane; its kubelet runs with settings "old", and `member.renders` is what kubeadm renders."""
    monkeypatch.setattr(kubeadm, "KUBELET_DIR", str(tmp_path / "kubelet"))
    (tmp_path / "kubelet").mkdir()
    (tmp_path / "kubelet" / "config.yaml").write_text("old")
    member: Any = kubeadm.Member(SimpleNamespace(run_command_environ_update={}))
    member.active, member.renders, member.started = "active", "old", 0
    monkeypatch.setattr(kubeadm, "unit_state", lambda _unit: {"ActiveState": member.active})

    def run(*words: str) -> str:
        dry = member.module.run_command_environ_update.get("KUBEADM_INIT_DRYRUN_DIR")
        assert ("--dry-run" in words) is bool(dry)
        (Path(dry or tmp_path / "kubelet") / "config.yaml").write_text(member.renders)
        member.started += not dry
        return ""

    member.kubeadm = run
    return member


def test_the_kubelet_of_the_first_control_plane_is_left_alone_where_nothing_changes(kubelet: Any) -> None:
    """kubeadm stops and starts it whenever it renders its settings."""
    kubelet.start_kubelet(stale=False)
    assert (kubelet.started, kubelet.actions) == (0, [])


@pytest.mark.parametrize(
    ("renders", "stale", "active"), [("new", False, "active"), ("old", True, "active"), ("old", False, "failed")]
)
def test_it_is_started_with_other_settings(kubelet: Any, renders: str, stale: bool, active: str) -> None:
    kubelet.renders, kubelet.active = renders, active
    kubelet.start_kubelet(stale=stale)
    assert (kubelet.started, kubelet.actions) == (1, ["restarted the kubelet"])


class Stopped(Exception):  # noqa: N818 - ends a module, is no error of the test's
    """fail_json was called."""


class FakeModule:
    """Takes what a module ends with."""

    def __init__(self, **params: Any) -> None:
        self.params = params

    def fail_json(self, **words: Any) -> None:
        raise Stopped(words["msg"])


@pytest.mark.parametrize(
    ("state", "answer", "refused"),
    [
        ("init", (True, "200"), "second cluster"),
        ("init", (False, "500 not ready"), "second cluster"),
        ("init", (False, ""), ""),
        ("join-control-plane", (True, "200"), ""),
        ("join-control-plane", (False, "500 etcd failed"), "500 etcd failed"),
        ("join-control-plane", (False, ""), "no answer"),
        ("join", (False, ""), ""),
    ],
)
def test_what_the_api_says_decides(
    kubeadm: Any, monkeypatch: pytest.MonkeyPatch, state: str, answer: tuple[bool, str], refused: str
) -> None:
    monkeypatch.setattr(kubeadm, "readiness", lambda _url: answer)
    monkeypatch.setattr(kubeadm, "READY_TIMEOUT_S", 0)
    member = kubeadm.Member(FakeModule(ready_url="https://api/readyz"))
    if not refused:
        member.require_fitting_api(state)
        return
    with pytest.raises(Stopped, match=refused):
        member.require_fitting_api(state)


def test_nothing_changes_while_etcd_cannot_spare_the_machine(kubeadm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    member = kubeadm.Member(FakeModule(address="10.0.0.1"))
    monkeypatch.setattr(kubeadm, "READY_TIMEOUT_S", 0)
    monkeypatch.setattr(member, "quorum_problem", lambda: "etcd of b: is silent")
    with pytest.raises(Stopped, match=r"etcd\.yaml must change.*etcd of b"):
        member.require_quorum(["etcd.yaml"])
    member.require_quorum(["kube-scheduler.yaml"])
    monkeypatch.setattr(member, "quorum_problem", lambda: "")
    member.require_quorum(["etcd.yaml"])


def test_an_etcd_that_is_down_here_cannot_be_missed(kubeadm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def down() -> None:
        raise kubeadm.EtcdError("127.0.0.1:2379 does not answer")

    monkeypatch.setattr(kubeadm, "members", down)
    assert kubeadm.Member(FakeModule(address="10.0.0.1")).quorum_problem() == ""
