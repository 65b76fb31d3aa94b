"""Which control plane kubectl is sent to."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from pai_install.app import kubectl
from pai_install.cli.main import run
from tests.ports import free_port
from tests.unit.site.sites import write_site

THREE = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


@pytest.mark.parametrize(
    ("alive", "words"),
    [
        (THREE, ("--server=https://10.0.0.1:6443",)),
        (THREE[1:], ("--server=https://10.0.0.2:6443",)),
        (THREE[2:], ("--server=https://10.0.0.3:6443",)),
        ((), None),
    ],
)
def test_the_first_that_answers_is_asked(alive: tuple[str, ...], words: tuple[str, ...] | None) -> None:
    assert kubectl.server_words(THREE, lambda address: address in alive) == words


def test_a_single_control_plane_is_where_the_kubeconfig_leads() -> None:
    assert kubectl.server_words(THREE[:1], lambda _address: True) == ()
    assert kubectl.server_words(THREE[:1], lambda _address: False) is None


def test_taking_a_connection_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is frozen, or whose API server has just started, does that too."""
    monkeypatch.setattr(kubectl, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(kubectl, "API_SERVER_PORT", server.getsockname()[1])
        assert not kubectl.ready("127.0.0.1")
    monkeypatch.setattr(kubectl, "API_SERVER_PORT", free_port())
    assert not kubectl.ready("127.0.0.1")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site that has a cluster."""
    folder = write_site(tmp_path / "site", config="user: admin\npassword: planted-secret\n")
    (folder / ".pai").mkdir()
    (folder / ".pai" / "kubeconfig").write_text("{}")
    return folder


Ways = Callable[..., list[Any]]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """ways(cached=..., direct=...): what was run, where the box has kubectl or not, and the API answers or not."""

    def make(*, cached: bool, direct: bool) -> list[Any]:
        done: list[Any] = []

        def over_ssh(_site: Any, _known: Path, words: Any, *, terminal: bool) -> int:
            done.append(("ssh", tuple(words), terminal))
            return 3

        def execute(_program: Path, words: list[str], environment: dict[str, str]) -> None:
            done.append(("here", tuple(words[1:]), environment["KUBECONFIG"]))
            raise click.exceptions.Exit(0)  # execve does not come back

        monkeypatch.setattr(kubectl, "cached_program", lambda *_: Path("/cache/kubectl") if cached else None)
        monkeypatch.setattr(kubectl, "ready", lambda _address: direct)
        monkeypatch.setattr("pai_install.cluster.over_ssh.attached_kubectl", over_ssh)
        monkeypatch.setattr("os.execve", execute)
        return done

    return make


def test_kubectl_of_this_box_takes_the_direct_way(site: Path, ways: Ways) -> None:
    done = ways(cached=True, direct=True)
    run(["kubectl", "--site", str(site), "--", "get", "nodes"])
    assert done == [("here", ("get", "nodes"), str(site / ".pai" / "kubeconfig"))]


@pytest.mark.parametrize(("cached", "direct"), [(True, False), (False, True), (False, False)])
def test_else_it_runs_on_a_control_plane_and_nothing_is_fetched(
    site: Path, ways: Ways, cached: bool, direct: bool
) -> None:
    done = ways(cached=cached, direct=direct)
    assert run(["kubectl", "--site", str(site), "--", "get", "nodes"]) == 3, "kubectl's own exit status"
    assert done == [("ssh", ("get", "nodes"), False)]


def test_without_a_cluster_there_is_nothing_to_ask(tmp_path: Path, ways: Ways, capsys: Any) -> None:
    done = ways(cached=True, direct=True)
    folder = write_site(tmp_path / "bare", config="user: admin\npassword: planted-secret\n")
    assert run(["kubectl", "--site", str(folder), "--", "get", "nodes"]) == 2
    assert "code: kubeconfig-missing" in capsys.readouterr().err
    assert done == []


FOREIGN = {
    "program": "users: [{name: a, user: {exec: {command: touch}}}]",
    "provider": "users: [{name: a, user: {auth-provider: {name: gcp}}}]",
    "second-user": "users: [{name: a, user: {}}, {name: b, user: {exec: {command: touch}}}]",
    "file-to-send": "users: [{name: a, user: {tokenFile: /etc/shadow}}]",
    "proxy": "clusters: [{name: a, cluster: {server: 'https://10.0.0.1:6443', proxy-url: 'http://evil'}}]",
    "any-certificate": "clusters: [{name: a, cluster: {insecure-skip-tls-verify: true}}]",
    "deep": "[" * 5_000,
    "nothing-readable": "\0",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_kubeconfig_that_came_with_the_site_runs_no_program(site: Path, ways: Ways, name: str, capsys: Any) -> None:
    done = ways(cached=True, direct=True)
    (site / ".pai" / "kubeconfig").write_text(FOREIGN[name])
    assert run(["kubectl", "--site", str(site), "--", "get", "nodes"]) == 2
    assert "code: kubeconfig-invalid" in capsys.readouterr().err
    assert done == []
