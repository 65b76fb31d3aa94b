"""What our module puts into a store that takes nothing over the network."""

from __future__ import annotations

import base64
import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ansible_path import PLAYBOOKS
from tests.unit.modules.conftest import load

MANIFEST = b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[]}'


@pytest.fixture(scope="session")
def store() -> Any:
    """playbooks/library/pai_store.py."""
    return load(PLAYBOOKS / "library" / "pai_store.py", "pai_library_pai_store")


def contents(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A blob in a file, and a manifest that names it."""
    path.write_bytes(b"{}")
    digest = "sha256:" + hashlib.sha256(b"{}").hexdigest()
    config = f'{{"mediaType":"application/vnd.oci.empty.v1+json","digest":"{digest}","size":2}}'
    manifest = {
        "repository": "files/one",
        "tag": "v1",
        "media_type": "application/vnd.oci.image.manifest.v1+json",
        "content": base64.b64encode(MANIFEST % config.encode()).decode(),
    }
    return {"repository": "files/one", "digest": digest, "path": str(path)}, manifest


def status(method: str, url: str) -> int:
    """What a request is answered with."""
    accept = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=accept)) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_root_fills_the_store_and_the_network_does_not(
    store: Any, program: Path, serve: Callable[..., str], tmp_path: Path
) -> None:
    url = serve(readonly=True)
    blob, manifest = contents(tmp_path / "file")
    with store.writer(str(program), str(tmp_path / "data")) as registry:
        store.push(registry, [blob], [manifest])
        socket = Path(registry.connection.path)
        assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert not socket.parent.exists()
    assert not (tmp_path / "file").exists()
    assert status("GET", f"{url}/v2/files/one/blobs/{blob['digest']}") == 200
    assert status("GET", f"{url}/v2/files/one/manifests/v1") == 200
    for method, path in (("POST", "blobs/uploads/"), ("PUT", "manifests/v1"), ("DELETE", "manifests/v1")):
        assert status(method, f"{url}/v2/files/one/{path}") == 405, method
    missing = store.Registry(http.client.HTTPConnection(url.removeprefix("http://")))
    assert missing.has_blob(blob)


def test_blob_that_was_damaged_in_the_store_is_sent_again(
    store: Any, program: Path, serve: Callable[..., str], tmp_path: Path
) -> None:
    """The registry answers for it as if it were whole, and never replaces it: no new machine could be installed."""
    url, data = serve(readonly=True), str(tmp_path / "data")
    blob, manifest = contents(tmp_path / "file")
    with store.writer(str(program), data) as registry:
        store.push(registry, [blob], [manifest])
    contents(tmp_path / "file")
    asked = store.Registry(http.client.HTTPConnection(url.removeprefix("http://")))
    assert not store.lost(asked, data, blob)
    Path(store.blob_path(data, blob["digest"])).write_bytes(b"[]")
    assert store.lost(asked, data, blob)
    store.clear_damaged(data, [blob])
    with store.writer(str(program), data) as registry:
        store.push(registry, [blob], [manifest])
    assert not store.lost(asked, data, blob)
    with urllib.request.urlopen(f"{url}/v2/files/one/blobs/{blob['digest']}") as answer:  # noqa: S310
        assert answer.read() == b"{}"


def test_a_registry_that_does_not_start_says_why(store: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no such feature >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(OSError, match="does not start: no such feature"), store.writer(str(broken), str(tmp_path)):
        pass


def test_uploads_cut_short_are_removed(store: Any, tmp_path: Path) -> None:
    repositories = tmp_path / "docker/registry/v2/repositories"
    (repositories / "files/runc/_uploads/1").mkdir(parents=True)
    (repositories / "files/runc/_manifests").mkdir()
    store.clear_uploads(str(tmp_path))
    assert [path.name for path in (repositories / "files/runc").iterdir()] == ["_manifests"]
