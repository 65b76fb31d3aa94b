from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pai_install.components.progress import silent
from pai_install.components.registry_client import Reference, pull, reference
from pai_install.errors import PaiError
from tests.errors import raises

from .registry import MANIFEST, digest, serve_image

if TYPE_CHECKING:
    from .conftest import WebServer


def place(web: WebServer, repository: str = "pause", tag: str = "3.10.2") -> Reference:
    return Reference(web.url, repository, tag)


@pytest.mark.parametrize(
    ("name", "mirror", "expected"),
    [
        ("registry.k8s.io/kube-proxy", "", ("https://registry.k8s.io", "kube-proxy")),
        ("registry.k8s.io/coredns/coredns", "", ("https://registry.k8s.io", "coredns/coredns")),
        ("docker.io/library/busybox", "", ("https://registry-1.docker.io", "library/busybox")),
        (
            "registry.k8s.io/pause",
            "https://mirror.example/pai/",
            ("https://mirror.example", "pai/registry.k8s.io/pause"),
        ),
        ("docker.io/flannel/flannel", "http://10.0.0.9:8080", ("http://10.0.0.9:8080", "docker.io/flannel/flannel")),
    ],
)
def test_an_image_has_its_place(name: str, mirror: str, expected: tuple[str, str]) -> None:
    assert reference(name, "v1", mirror) == Reference(*expected, "v1")


def test_a_place_is_told_without_its_scheme() -> None:
    assert str(reference("registry.k8s.io/pause", "3.10.2")) == "registry.k8s.io/pause:3.10.2"


def test_an_image_becomes_a_layout(web: WebServer, tmp_path: Path) -> None:
    expected = serve_image(web, "pause", "3.10.2")
    layout = tmp_path / "layout"
    assert pull(place(web), "amd64", layout, tmp_path / "downloads", silent) == expected
    index = json.loads((layout / "index.json").read_text())
    (described,) = index["manifests"]
    assert (described["digest"], described["mediaType"]) == (expected, MANIFEST)
    blobs = list((layout / "blobs/sha256").iterdir())
    assert len(blobs) == 3
    assert all(digest(path.read_bytes()) == f"sha256:{path.name}" for path in blobs)
    assert described["size"] == (layout / "blobs/sha256" / expected.removeprefix("sha256:")).stat().st_size


def test_the_right_architecture_is_taken(web: WebServer, tmp_path: Path) -> None:
    expected = serve_image(web, "pause", "3.10.2", architectures=("s390x", "arm64", "amd64"))
    assert pull(place(web), "arm64", tmp_path / "layout", tmp_path / "downloads", silent) == expected


def test_an_image_for_other_machines_is_refused(web: WebServer, tmp_path: Path) -> None:
    serve_image(web, "pause", "3.10.2", architectures=("s390x",))
    with raises("registry-image-not-for-architecture", "linux/amd64"):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)


def test_a_token_is_fetched_when_the_registry_asks(web: WebServer, tmp_path: Path) -> None:
    expected = serve_image(web, "pause", "3.10.2")
    web.tokens = {path for path in web.pages if path.startswith("/v2/")}
    web.pages["/token"] = b'{"token": "secret"}'
    assert pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent) == expected
    assert "/token?service=registry&scope=repository%3Ax%3Apull" in web.paths()


def test_a_token_that_does_not_help_is_an_error(web: WebServer, tmp_path: Path) -> None:
    serve_image(web, "pause", "3.10.2")
    web.tokens = {path for path in web.pages if path.startswith("/v2/")}
    web.pages["/token"] = b'{"access_token": "wrong"}'
    with raises("registry-anonymous-pull-refused"):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)


def test_a_damaged_layer_is_refused(web: WebServer, tmp_path: Path) -> None:
    serve_image(web, "pause", "3.10.2")
    layer = next(path for path, body in web.pages.items() if body.startswith(b"layer"))
    web.pages[layer] = b"changed on the way"
    with raises("download-checksum-mismatch"):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)


def test_a_manifest_that_is_not_the_promised_one_is_refused(web: WebServer, tmp_path: Path) -> None:
    expected = serve_image(web, "pause", "3.10.2", architectures=("amd64",))
    web.pages[f"/v2/pause/manifests/{expected}"] += b" "
    with raises("registry-manifest-not-listed"):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)


def test_a_digest_cannot_lead_out_of_the_folder(web: WebServer, tmp_path: Path) -> None:
    serve_image(web, "pause", "3.10.2")
    manifest = {"config": {"digest": "sha256:../../evil"}, "layers": []}
    web.pages["/v2/pause/manifests/3.10.2"] = json.dumps(manifest).encode()
    with raises("registry-digest-invalid", "sha256"):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)


def test_an_unknown_tag_names_the_image(web: WebServer, tmp_path: Path) -> None:
    with raises("download-refused", "/v2/pause/manifests/3.10.2", "404"):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)


def test_mirror_realm_reads_no_file_of_the_dev_box(web: WebServer, tmp_path: Path) -> None:
    secret = tmp_path / "token.json"
    secret.write_text('{"token": "of-another-service"}')
    for realm in (f"file://{secret}#", "http://127.0.0.1:1/token", "ftp://x/", "/etc/passwd", "javascript:1", ""):
        web.realm = realm
        serve_image(web, "pause", "3.10.2")
        web.tokens = {path for path in web.pages if path.startswith("/v2/")}
        with raises("registry-realm-outside"):
            pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)
    assert all("of-another-service" not in str(headers) for _path, headers in web.asked)


ODD = [
    b"",
    b"x",
    b"[]",
    b"5",
    b"null",
    b"[" * 50_000,
    b'{"token": 5}',
    b'{"token": ["x"]}',
    b'{"token": "a\\nb"}',
    b"{}",
]


@pytest.mark.parametrize("answer", ODD)
def test_odd_answers_to_a_login_are_errors_one_can_act_on(web: WebServer, tmp_path: Path, answer: bytes) -> None:
    serve_image(web, "pause", "3.10.2")
    web.tokens = {path for path in web.pages if path.startswith("/v2/")}
    web.pages["/token"] = answer
    with pytest.raises(PaiError):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)


MANIFESTS = [
    *ODD,
    b'{"manifests": 5}', b'{"manifests": [5, {"platform": 7}]}', b'{"config": 5, "layers": []}',
    b'{"config": {"digest": 5}, "layers": {}}', b'{"config": {}, "layers": [[]]}',
    b'{"manifests": [{"platform": {"os": "linux", "architecture": "amd64"}, "digest": 5}]}',
]  # fmt: skip


@pytest.mark.parametrize("answer", MANIFESTS)
def test_odd_manifests_are_errors_one_can_act_on(web: WebServer, tmp_path: Path, answer: bytes) -> None:
    web.pages["/v2/pause/manifests/3.10.2"] = answer
    with pytest.raises(PaiError):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)


def test_a_layer_that_is_longer_than_its_manifest_says_is_refused(web: WebServer, tmp_path: Path) -> None:
    serve_image(web, "pause", "3.10.2")
    layer = next(path for path, body in web.pages.items() if body.startswith(b"layer"))
    web.pages[layer] += b"more" * 1000
    with raises("download-too-long"):
        pull(place(web), "amd64", tmp_path / "layout", tmp_path / "downloads", silent)
