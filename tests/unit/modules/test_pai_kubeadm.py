"""What kubeadm's module decides by: files, processes and answers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def kubeadm(library: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with its folders in tmp_path."""
    module = library("pai_kubeadm")
    for name in ("manifests", "copies", "rendered"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(module, "MANIFESTS", str(tmp_path / "manifests"))
    monkeypatch.setattr(module, "COPIES", str(tmp_path / "copies"))
    monkeypatch.setattr(module, "STATE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "MARKER", str(tmp_path / "kubeadm.json"))
    return module


def write(tmp_path: Path, **texts: str) -> None:
    """write(manifests_etcd="x") makes manifests/etcd.yaml."""
    for name, text in texts.items():
        folder, _, stem = name.partition("_")
        (tmp_path / folder / f"{stem}.yaml").write_text(text)


def test_only_what_differs_is_rendered_again(kubeadm: Any, tmp_path: Path) -> None:
    write(tmp_path, rendered_api="new", rendered_scheduler="same", rendered_etcd="new")
    write(tmp_path, manifests_api="old", manifests_scheduler="same")
    assert kubeadm.differing("init", str(tmp_path / "rendered")) == ["api.yaml", "etcd.yaml"]


def test_a_joined_members_etcd_is_compared_with_its_copy(kubeadm: Any, tmp_path: Path) -> None:
    write(tmp_path, rendered_api="same", manifests_api="same", copies_etcd="joined", manifests_etcd="joined")
    assert kubeadm.differing("join-control-plane", str(tmp_path / "rendered")) == []
    write(tmp_path, manifests_etcd="by hand")
    assert kubeadm.differing("join-control-plane", str(tmp_path / "rendered")) == ["etcd.yaml"]


def test_what_joining_rendered_comes_back(kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = tmp_path / "kubeadm-flags.env"
    monkeypatch.setattr(kubeadm, "RENDERED", (*kubeadm.RENDERED[:2], str(flags)))
    flags.write_text("flags")
    write(tmp_path, manifests_etcd="joined")
    kubeadm.keep_copies("join-control-plane")
    (tmp_path / "manifests" / "etcd.yaml").unlink()
    flags.write_text("by hand")
    kubeadm.bring_back("join-control-plane")
    assert (tmp_path / "manifests" / "etcd.yaml").read_text() == "joined"
    assert flags.read_text() == "flags"


def test_rendering_the_same_again_is_no_reason_to_restart(
    kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeadm, "RENDERED", (str(tmp_path / "manifests" / "*.yaml"),))
    write(tmp_path, manifests_same="x", manifests_other="x")
    for name in ("same", "other"):
        os.utime(tmp_path / "manifests" / f"{name}.yaml", (1000, 1000))
    before, written = kubeadm.rendered_files(), kubeadm.written_at()
    write(tmp_path, manifests_same="x", manifests_other="changed", manifests_new="y")
    kubeadm.keep_times(before, written)
    times = {path.stem: path.stat().st_mtime for path in (tmp_path / "manifests").iterdir()}
    assert times["same"] == 1000
    assert min(times["other"], times["new"]) > 1000


@pytest.fixture
def key(kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A guarded file that is as it should be."""
    path = tmp_path / "admin.conf"
    path.write_text("secret")
    path.chmod(0o600)
    monkeypatch.setattr(kubeadm, "GUARDED", {str(tmp_path / "*.conf"): "0600"})
    monkeypatch.setattr(kubeadm, "RENDERED", ())
    return path


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
class TestGuardedFiles:
    """Keys, kubeconfigs and settings: root's, and closed to others."""

    def test_a_closed_file_is_left_alone(self, kubeadm: Any, key: Path) -> None:
        assert kubeadm.loose() == {}
        kubeadm.tighten()
        assert key.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize(
        ("loosen", "words"),
        [
            (lambda path: path.chmod(0o644), "has mode 0644, more than 0600"),
            (lambda path: os.chown(path, 1, 0), "belongs to 1:0, not to root"),
        ],
    )
    def test_an_opened_one_is_named_and_closed(
        self, kubeadm: Any, key: Path, loosen: Callable[[Path], None], words: str
    ) -> None:
        loosen(key)
        assert list(kubeadm.loose().values()) == [f"{key} {words}"]
        kubeadm.tighten()
        assert kubeadm.loose() == {}

    def test_less_than_permitted_stays_less(self, kubeadm: Any, key: Path) -> None:
        key.chmod(0o400)
        kubeadm.tighten()
        assert key.stat().st_mode & 0o777 == 0o400

    def test_its_mode_is_recorded_not_its_bytes(self, kubeadm: Any, managed: Any, key: Path) -> None:
        assert kubeadm.expectations("join") == [{"kind": "private", "path": str(key), "mode": "0600"}]
        key.write_text("renewed")
        assert managed.drift(kubeadm.expectations("join")) == []
        key.chmod(0o640)
        assert managed.drift(kubeadm.expectations("join")) == [f"{key} has mode 0640, more than 0600"]
        key.unlink()
        assert managed.drift([{"kind": "private", "path": str(key), "mode": "0600"}]) == []


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


@pytest.mark.parametrize("made", ["file", "folder"])
def test_missing_kubeconfigs_are_made_and_others_left(
    kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    monkeypatch.setattr(kubeadm, "KUBERNETES", str(tmp_path))
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
    member = kubeadm.Member(None)
    member.kubeadm = lambda *words: calls.append(words)
    member.make_kubeconfigs("join-control-plane")
    assert [words[3] for words in calls] == ["admin", "scheduler"]
    assert member.actions == [f"made {tmp_path}/admin.conf", f"made {tmp_path}/scheduler.conf"]
    assert restarted == ["kube-admin", "kube-scheduler"]
    assert not (tmp_path / "scheduler.conf").exists()
    assert kubeadm.kubeconfigs_of("join") == []


def test_static_pod_begins_anew_when_its_program_has_ended(
    kubeadm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeadm, "MANIFESTS", str(tmp_path))
    manifest = tmp_path / "kube-scheduler.yaml"
    manifest.write_text("kind: Pod")
    seen: list[bool] = []

    def running(name: str) -> float:
        """It ends a while after its manifest is gone."""
        assert name == "kube-scheduler"
        seen.append(manifest.exists())
        return 1.0 if len(seen) < 2 else 0.0

    monkeypatch.setattr(kubeadm, "youngest_start", running)
    kubeadm.restart_static_pod("kube-scheduler")
    assert seen == [False, False]
    assert manifest.read_text() == "kind: Pod"
    kubeadm.restart_static_pod("kube-admin")  # no such pod: nothing to do
    assert len(seen) == 2


def test_rendered_files_name_what_restarts_with_them(kubeadm: Any) -> None:
    assert kubeadm.reader(f"{kubeadm.MANIFESTS}/kube-apiserver.yaml") == "the static pod kube-apiserver"
    assert kubeadm.reader("/var/lib/kubelet/config.yaml") == "kubelet.service"


def test_the_youngest_process_of_a_name(kubeadm: Any) -> None:
    """This process started a moment ago, and after the box did."""
    name = Path("/proc/self/comm").read_text().strip()
    started = kubeadm.youngest_start(name)
    assert time.time() - 3600 < started <= time.time() + 1
    assert kubeadm.youngest_start("no-such-program") == 0


def test_waiting_for_a_restart_ends_with_it_or_with_patience(kubeadm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    monkeypatch.setattr(kubeadm, "youngest_start", lambda _name: time.time())
    kubeadm.wait_for_restart(["etcd.yaml"], time.time())
    assert time.monotonic() - began < 1
    monkeypatch.setattr(kubeadm, "youngest_start", lambda _name: 0.0)
    kubeadm.wait_for_restart(["etcd.yaml"], time.time(), patience_s=0.1)


@pytest.fixture
def answers() -> Any:
    """A server on this box that gives the status in the path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(self.path.strip("/")))
            self.end_headers()
            self.wfile.write(b"[-]etcd failed")

        def log_message(self, *_words: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_api_is_ready_unready_or_silent(kubeadm: Any, answers: str) -> None:
    assert kubeadm.asked_whether_ready(f"{answers}/200") == (True, "200")
    ready, said = kubeadm.asked_whether_ready(f"{answers}/500")
    assert not ready
    assert said.startswith("500 ")
    assert "etcd failed" in said
    assert kubeadm.asked_whether_ready("http://127.0.0.1:1/readyz") == (False, "")


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
        ("join-control-plane", (False, ""), "nobody answers"),
        ("join", (False, ""), ""),
    ],
)
def test_what_the_api_says_decides(
    kubeadm: Any, monkeypatch: pytest.MonkeyPatch, state: str, answer: tuple[bool, str], refused: str
) -> None:
    monkeypatch.setattr(kubeadm, "asked_whether_ready", lambda _url: answer)
    monkeypatch.setattr(kubeadm, "PATIENCE_S", 0)
    member = kubeadm.Member(FakeModule(ready_url="https://api/readyz"))
    if not refused:
        member.require_fitting_api(state)
        return
    with pytest.raises(Stopped, match=refused):
        member.require_fitting_api(state)


def test_nothing_changes_while_etcd_cannot_spare_the_machine(kubeadm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    member = kubeadm.Member(FakeModule(address="10.0.0.1"))
    monkeypatch.setattr(kubeadm, "PATIENCE_S", 0)
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
