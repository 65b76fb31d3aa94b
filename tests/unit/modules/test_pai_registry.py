"""What a machine asks for images, and how it says what is wrong; against a scripted registry over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.ansible_path import PLAYBOOKS, module_util
from tests.unit.modules.conftest import load

registry = module_util("pai_registry")
LAYERS = {"sha256:" + "a" * 64: b"config", "sha256:" + "b" * 64: b"x" * 5000}
MANIFEST = {"config": {"digest": "sha256:" + "a" * 64}, "layers": [{"digest": "sha256:" + "b" * 64}] * 2}


class ScriptedRegistry(BaseHTTPRequestHandler):
    """A stand-in: paths -> (status, body); what was asked is kept."""

    answers: ClassVar[dict[str, tuple[int, bytes]]]
    asked: ClassVar[list[tuple[str, str]]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        status, body = self.answers.get(self.path.partition("?")[0], (404, b"no"))
        self.send_response(status)
        if self.path.startswith("/v2/?"):
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: Any) -> None:
        """Quiet."""


@pytest.fixture
def peer() -> Iterator[tuple[type[ScriptedRegistry], str]]:
    class Peer(ScriptedRegistry):
        answers: ClassVar[dict[str, tuple[int, bytes]]] = {"/v2/": (200, b"{}")}
        asked: ClassVar[list[tuple[str, str]]] = []

    with ThreadingHTTPServer(("127.0.0.1", 0), Peer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Peer, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("team/app:2", "docker.io/team/app:2"),
        ("quay.io/team/app", "quay.io/team/app:latest"),
        ("localhost:5000/a/b:1", "localhost:5000/a/b:1"),
        ("nvcr.io/nvidia/cuda@sha256:" + "0" * 64, "nvcr.io/nvidia/cuda@sha256:" + "0" * 64),
        ("a:1@sha256:" + "0" * 64, "docker.io/library/a@sha256:" + "0" * 64),
    ],
)
def test_names_are_read_as_docker_reads_them(text: str, full: str) -> None:
    assert str(registry.parse_image(text)) == full


HOSTS = """server = "https://quay.io"

[host."https://cache:30500"]
  capabilities = ["pull", "resolve"]
  ca = ["/etc/ca.pem"]

[host."https://cache:30500".header]
  Authorization = "Basic QQ=="

[host."https://second"]
  ca = ["/other.pem"]
"""
ALONE = """server = "https://cache:30500"
capabilities = ["pull", "resolve"]
ca = ["/etc/ca.pem"]

[header]
  authorization = "Basic QQ=="
"""


@pytest.mark.parametrize("text", [HOSTS, ALONE])
def test_the_first_endpoint_is_the_one_that_counts(tmp_path: Path, text: str) -> None:
    (tmp_path / "quay.io").mkdir()
    (tmp_path / "quay.io/hosts.toml").write_text(text)
    found = registry.endpoint("quay.io", str(tmp_path))
    assert found == ("https://cache:30500", ("/etc/ca.pem",), "Basic QQ==", False)


@pytest.mark.parametrize("fallback", [True, False])
def test_what_the_role_writes_is_understood(tmp_path: Path, *, fallback: bool) -> None:
    endpoints = [{"endpoint": "https://cache:30500", "ca": "bundle", "auth_token": "QQ=="}]
    upstream = {"name": "quay.io", "server": "https://quay.io", "fallback": fallback, "endpoints": endpoints}
    module = load(PLAYBOOKS / "filter_plugins/pai_registries.py", "pai_registries_written")
    (tmp_path / "quay.io").mkdir()
    (tmp_path / "quay.io/hosts.toml").write_text(module.hosts_toml(upstream))
    found = registry.endpoint("quay.io", str(tmp_path))
    assert found == ("https://cache:30500", (module.BUNDLE,), "Basic QQ==", False)


def test_a_path_that_takes_the_place_of_v2(tmp_path: Path) -> None:
    """A project of Harbor's: containerd's override_path."""
    endpoints = [{"endpoint": "https://harbor.example.com/v2/hub", "ca": "", "auth_token": ""}]
    upstream = {"name": "docker.io", "server": "https://registry-1.docker.io", "fallback": True, "endpoints": endpoints}
    module = load(PLAYBOOKS / "filter_plugins/pai_registries.py", "pai_registries_whole")
    (tmp_path / "docker.io").mkdir()
    (tmp_path / "docker.io/hosts.toml").write_text(module.hosts_toml(upstream))
    found = registry.endpoint("docker.io", str(tmp_path))
    assert found.address("/v2/") == "https://harbor.example.com/v2/"
    assert found.address("/v2/library/busybox/manifests/1") == (
        "https://harbor.example.com/v2/hub/library/busybox/manifests/1"
    )


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_cannot_answer_now_refused_no_account(
    peer: tuple[type[ScriptedRegistry], str], status: int
) -> None:
    script, url = peer
    script.answers["/v2/"] = (status, b"later")
    with pytest.raises(registry.RegistryUnreachableError, match=f"cannot answer now .HTTP {status}."):
        registry.probe(url, "robot", "secret", "")


def test_a_machine_that_was_never_told_says_so(tmp_path: Path) -> None:
    with pytest.raises(registry.RegistryError, match=r"it asks quay\.io itself"):
        registry.endpoint("quay.io", str(tmp_path))


def test_ping_shows_the_login_and_names_the_upstream(peer: tuple[type[ScriptedRegistry], str]) -> None:
    script, url = peer
    registry.Client(registry.Endpoint(url, (), "Basic QQ=="), "quay.io").ping()
    assert script.asked == [("/v2/?ns=quay.io", "Basic QQ==")]


@pytest.mark.parametrize(
    ("answer", "words"),
    [((401, b""), "does not accept this machine's login"), ((503, b"down"), "upstream"), ((404, b""), "has no /v2/")],
)
def test_ping_says_why_not(peer: tuple[type[ScriptedRegistry], str], answer: tuple[int, bytes], words: str) -> None:
    script, url = peer
    script.answers["/v2/"] = answer
    with pytest.raises(registry.RegistryError, match=words):
        registry.Client(registry.Endpoint(url), "quay.io").ping()


def test_something_that_is_no_registry(
    peer: tuple[type[ScriptedRegistry], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, url = peer
    monkeypatch.setattr(script, "send_header", lambda *_words: None)
    with pytest.raises(registry.RegistryError):
        registry.Client(registry.Endpoint(url), "quay.io").ping()


def test_nothing_listens() -> None:
    with pytest.raises(registry.RegistryError, match="does not answer"):
        registry.Client(registry.Endpoint("http://127.0.0.1:9"), "quay.io").ping()


def test_an_authority_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    with pytest.raises(registry.RegistryError, match="cannot be used to check"):
        registry.Client(registry.Endpoint("https://127.0.0.1:9", (str(tmp_path / "ca.pem"),)), "quay.io")


def script_image(script: type[ScriptedRegistry], *, index: bool) -> None:
    if index:
        entries = [
            {"digest": "sha256:arm", "platform": {"os": "linux", "architecture": "arm64"}},
            {"digest": "sha256:amd", "platform": {"os": "linux", "architecture": "amd64"}},
        ]
        script.answers["/v2/team/app/manifests/1"] = (200, json.dumps({"manifests": entries}).encode())
        script.answers["/v2/team/app/manifests/sha256:amd"] = (200, json.dumps(MANIFEST).encode())
    else:
        script.answers["/v2/team/app/manifests/1"] = (200, json.dumps(MANIFEST).encode())
    for digest, body in LAYERS.items():
        script.answers[f"/v2/team/app/blobs/{digest}"] = (200, body)


@pytest.mark.parametrize("index", [False, True])
def test_all_of_an_image_is_read_once(peer: tuple[type[ScriptedRegistry], str], *, index: bool) -> None:
    script, url = peer
    script_image(script, index=index)
    client = registry.Client(registry.Endpoint(url), "quay.io")
    assert registry.pull_through(client, registry.parse_image("quay.io/team/app:1"), "amd64") == 5006
    assert len([path for path, _ in script.asked if "/blobs/" in path]) == 2


def test_an_image_without_a_variant_for_this_machine(peer: tuple[type[ScriptedRegistry], str]) -> None:
    script, url = peer
    script_image(script, index=True)
    with pytest.raises(registry.RegistryError, match="no variant for linux/riscv64"):
        registry.pull_through(
            registry.Client(registry.Endpoint(url), "quay.io"), registry.parse_image("quay.io/team/app:1"), "riscv64"
        )


@pytest.mark.parametrize("body", [b"[]", b"{", b"null", b'{"manifests": 5}', b'{"layers": [1, {"digest": 3}]}'])
def test_hostile_manifests_are_refused_in_words(peer: tuple[type[ScriptedRegistry], str], body: bytes) -> None:
    script, url = peer
    script.answers["/v2/team/app/manifests/1"] = (200, body)
    with pytest.raises(registry.RegistryError):
        registry.pull_through(
            registry.Client(registry.Endpoint(url), "quay.io"), registry.parse_image("quay.io/team/app:1"), "amd64"
        )


class Guarded(ScriptedRegistry):
    """A stand-in that wants one account: at /v2/ itself, or at a realm that hands out tokens."""

    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}
    asked: ClassVar[list[tuple[str, str]]] = []
    realm = ""

    def do_GET(self) -> None:
        right = self.headers.get("Authorization") == "Basic cm9ib3Q6c2VjcmV0"  # robot:secret
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        self.send_response(200 if right else 401)
        if not right:
            self.send_header("WWW-Authenticate", f'Bearer realm="{self.realm}",service="x"' if self.realm else "Basic")
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture(params=["basic", "bearer"])
def guarded(request: pytest.FixtureRequest) -> Iterator[str]:
    class Peer(Guarded):
        asked: ClassVar[list[tuple[str, str]]] = []

    with ThreadingHTTPServer(("127.0.0.1", 0), Peer) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        Peer.realm = f"{url}/token" if request.param == "bearer" else ""
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield url
        server.shutdown()
        thread.join()


def test_the_right_account_is_taken(guarded: str) -> None:
    registry.probe(guarded, "robot", "secret", "")


def test_an_insecure_registry_is_asked_without_tls_where_it_has_none(guarded: str) -> None:
    address = guarded.replace("http://", "https://")
    registry.probe_insecure(address, "robot", "secret")
    with pytest.raises(registry.RegistryError, match="does not accept the account robot"):
        registry.probe_insecure(address, "robot", "wrong")
    with pytest.raises(registry.RegistryError, match="answers without TLS"):
        registry.probe(address, "robot", "secret", "")


def test_a_wrong_password_is_told(guarded: str) -> None:
    with pytest.raises(registry.RegistryError, match=r"does not accept the account robot \(HTTP 401\)") as caught:
        registry.probe(guarded, "robot", "wrong", "")
    assert "wrong" not in str(caught.value)


def test_nobody_needs_an_account_to_be_told_of_one(guarded: str) -> None:
    registry.probe(guarded, "", "", "")


def test_a_web_server_is_no_registry(peer: tuple[type[ScriptedRegistry], str]) -> None:
    _script, url = peer
    with pytest.raises(registry.RegistryError, match="is no registry"):
        registry.probe(f"{url}/web", "robot", "secret", "")


def test_a_registry_that_is_down_is_another_matter() -> None:
    with pytest.raises(registry.RegistryUnreachableError):
        registry.probe("http://127.0.0.1:9", "", "", "")


def test_no_password_is_sent_where_a_registry_points_outside(peer: tuple[type[ScriptedRegistry], str]) -> None:
    class Sly(Guarded):
        realm = "file:///etc/passwd"
        asked: ClassVar[list[tuple[str, str]]] = []

    with ThreadingHTTPServer(("127.0.0.1", 0), Sly) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with pytest.raises(registry.RegistryError, match="no password goes there"):
            registry.probe(f"http://127.0.0.1:{server.server_port}", "robot", "secret", "")
        server.shutdown()
        thread.join()
    assert [authorization for _path, authorization in Sly.asked] == [""]
