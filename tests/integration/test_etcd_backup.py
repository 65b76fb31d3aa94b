"""Real etcd on loopback: a snapshot, its hash, what is restored from it; members that leave while keys are written."""

from __future__ import annotations

import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_install.registry.certificates import make_authority, make_serving
from tests.ansible_path import PLAYBOOKS, module_util
from tests.integration.control_plane import running
from tests.ports import free_ports
from tests.unit.modules.conftest import ModuleFailedError, Run, library, load, run_module

__all__ = ["library", "run_module"]

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "roles" / "control_plane" / "files" / "etcd_snapshot.py"
# The host stays. On a busy disk, members that wait for it lose their leader.
FASTER = "--unsafe-no-fsync"


@contextmanager
def etcd(program: Path, data: Path) -> Iterator[str]:
    """An etcd of one member; the address of its clients."""
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    words: list[str | Path] = [
        *(program, "--name", "one", "--data-dir", data, "--log-level", "error"),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"one={peer}"),
        FASTER,
    ]
    with running(words, data.with_suffix(".log")):
        yield client


@pytest.fixture
def ctl(programs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """etcdctl as a control plane has it: it knows where etcd is. Calls give what it printed."""

    def at(client: str) -> Any:
        wrapper = tmp_path / "etcdctl"
        wrapper.write_text(f'#!/bin/sh\nETCDCTL_ENDPOINTS={client} exec {programs["etcdctl"]} "$@"\n')
        wrapper.chmod(0o755)

        def call(*words: str) -> str:
            deadline = time.monotonic() + 120
            while True:
                done = subprocess.run([wrapper, *words], capture_output=True, text=True, check=False)
                if done.returncode == 0 or time.monotonic() > deadline:
                    assert done.returncode == 0, done.stderr
                    return done.stdout
                time.sleep(0.3)

        return call

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return at


def test_what_was_deleted_is_there_again(programs: dict[str, Path], ctl: Any, tmp_path: Path) -> None:
    snapshots: Any = load(PROGRAM, "etcd_snapshot")
    snapshots.ETCDCTL = str(tmp_path / "etcdctl")
    with etcd(programs["etcd"], tmp_path / "data") as client:
        call = ctl(client)
        call("put", "/registry/configmaps/before", "then")
        revision = int(
            call("get", "/registry/configmaps/before", "--write-out=fields").split('"Revision" : ')[1].split()[0]
        )
        snapshots.take(str(tmp_path / "etcd.db"))
        call("del", "/registry/configmaps/before")
        call("put", "/registry/configmaps/after", "now")
    restore: Any = load(PLAYBOOKS / "library" / "pai_restore.py", "pai_restore_real")
    words = ["--name", "one", "--initial-cluster", "one=http://127.0.0.1:1", "--initial-advertise-peer-urls"]
    words += ["http://127.0.0.1:1", "--data-dir", str(tmp_path / "restored"), "--bump-revision", restore.BUMP]
    utl, snapshot = str(programs["etcdutl"]), str(tmp_path / "etcd.db")
    command = [utl, "snapshot", "restore", snapshot, *words, "--mark-compacted"]
    subprocess.run(command, check=True, capture_output=True)
    with etcd(programs["etcd"], tmp_path / "restored") as client:
        call = ctl(client)
        assert call("get", "/registry/configmaps/before", "--print-value-only").strip() == "then"
        assert call("get", "/registry/configmaps/after") == ""
        now = call("get", "/registry/configmaps/before", "--write-out=fields").split('"Revision" : ')[1].split()[0]
        assert int(now) > revision + 1_000_000, "a watch of before takes nothing new for old"


def test_a_damaged_snapshot_is_refused_by_both(programs: dict[str, Path], ctl: Any, tmp_path: Path) -> None:
    snapshots: Any = load(PROGRAM, "etcd_snapshot")
    snapshots.ETCDCTL = str(tmp_path / "etcdctl")
    with etcd(programs["etcd"], tmp_path / "data") as client:
        ctl(client)("put", "a", "1")
        snapshots.take(str(tmp_path / "etcd.db"))
    content = bytearray((tmp_path / "etcd.db").read_bytes())
    content[5000] ^= 1
    (tmp_path / "etcd.db").write_bytes(content)
    with pytest.raises(snapshots.SnapshotError, match="another hash"):
        snapshots.verified(str(tmp_path / "etcd.db"))
    utl, snapshot = str(programs["etcdutl"]), str(tmp_path / "etcd.db")
    words = [utl, "snapshot", "restore", snapshot, "--data-dir", str(tmp_path / "r")]
    assert subprocess.run(words, capture_output=True, check=False).returncode != 0


@pytest.fixture
def three(programs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Three members at 127.0.0.1, .2 and .3 with certificates as kubeadm places them; how to stop one of them."""
    now = datetime.now(UTC)
    authority, key = make_authority("etcd", now)
    pki = tmp_path / "pki"
    pki.mkdir()
    places = [f"127.0.0.{number}" for number in (1, 2, 3)]
    certificate, own = make_serving(authority, key, ("localhost", *places), now)
    for name, text in {"ca.crt": authority, "server.crt": certificate, "server.key": own}.items():
        (pki / name).write_text(text)
    client, peer = free_ports(2)
    cluster = ",".join(f"m{place[-1]}=http://{place}:{peer}" for place in places)
    util = module_util("pai_etcd_members")
    monkeypatch.setattr(util, "HERE", f"https://127.0.0.1:{client}")
    for name in ("members", "remove"):
        monkeypatch.setattr(getattr(util, name), "__defaults__", (f"https://127.0.0.1:{client}",))
    with ExitStack() as stack:
        started = {}
        for place in places:
            name, url = f"m{place[-1]}", f"https://{place}:{client}"
            words: list[str | Path] = [
                *(programs["etcd"], "--name", name, "--data-dir", tmp_path / name, "--log-level", "error"),
                *("--listen-client-urls", url, "--advertise-client-urls", url),
                *("--cert-file", pki / "server.crt", "--key-file", pki / "server.key"),
                *("--listen-peer-urls", f"http://{place}:{peer}", "--initial-advertise-peer-urls"),
                *(f"http://{place}:{peer}", "--initial-cluster", cluster),
                FASTER,
            ]
            started[name] = stack.enter_context(running(words, tmp_path / f"{name}.log"))
        monkeypatch.setattr(util, "_request", _asking(util, pki))
        until(lambda: not any(util.sickness(one) for one in util.members()))
        yield util, started


def _asking(util: Any, pki: Path) -> Any:
    """The module's own way to ask, with the test's authority and no certificate of a client's."""
    real = util._request

    def ask(url: str, body: Any = None) -> Any:
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        original = util.ssl.create_default_context
        context.load_cert_chain = lambda *_: None  # type: ignore[method-assign]
        try:
            util.ssl.create_default_context = lambda **_: context
            return real(url, body)
        finally:
            util.ssl.create_default_context = original

    return ask


def until(holds: Any) -> None:
    """Raises AssertionError where something does not come true in two minutes."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(OSError, RuntimeError, module_util("pai_etcd_members").EtcdError):  # it has not started yet
            if holds():
                return
        time.sleep(0.3)
    raise AssertionError("etcd did not come up")


def test_members_leave_one_after_the_other(three: Any, run_module: Run) -> None:
    """A dead one first, then a healthy one, as etcd allows it; what is left answers."""
    util, started = three
    started["m3"].kill()
    started["m3"].wait()
    until(lambda: [one["name"] for one in util.members() if util.sickness(one)] == ["m3"])  # a leader is chosen
    found = util.members()
    sick = {one["id"]: why for one in found if (why := util.sickness(one))}
    assert "m3" in util.leave_problem(found, sick, ["127.0.0.2"], "127.0.0.1"), "a healthy one may not leave now"
    words = {"leaving": ["127.0.0.2", "127.0.0.3"], "address": "127.0.0.1"}
    assert run_module("pai_etcd", **words, only_check=True)["changed"] is False
    assert run_module("pai_etcd", **words)["removed"] == ["m3", "m2"]
    assert [util.label(one) for one in util.members()] == ["m1"]
    assert not util.sickness(util.members()[0])


def test_without_a_quorum_nobody_leaves(three: Any, run_module: Run) -> None:
    _util, started = three
    for name in ("m2", "m3"):
        started[name].kill()
        started[name].wait()
    with pytest.raises(ModuleFailedError, match="no control plane may leave etcd now"):
        run_module("pai_etcd", leaving=["127.0.0.3"], address="127.0.0.1", timeout=5)
