"""The component store's action: what it reads on the controller host."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail

from pai_install.registry.identity import make_identity
from pai_install.registry.model import ServedNames
from tests.ansible_path import PLAYBOOKS

from .conftest import ModuleFailedError, Run, load
from .https import https_server

OUTSIDE = "sha256:../../../../root/.ssh/id_ed25519"
DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture(scope="session")
def action() -> Any:
    """playbooks/action_plugins/pai_store.py."""
    return load(PLAYBOOKS / "action_plugins" / "pai_store.py", "pai_action_store")


def image(folder: Path, *, manifest: str = DIGEST, layer: str = DIGEST) -> dict[str, Any]:
    """An image with one layer, in a layout folder."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    document = {"config": {"digest": DIGEST}, "layers": [{"digest": layer}]}
    (blobs / ("a" * 64)).write_text(json.dumps(document))
    return {"repository": "pause", "tag": "1", "layout": str(folder), "manifest_digest": manifest}


def test_blobs_are_those_of_the_layout(action: Any, tmp_path: Path) -> None:
    blobs, manifest = action.image_contents(image(tmp_path))
    assert {Path(blob["path"]).parent for blob in blobs} == {tmp_path / "blobs" / "sha256"}
    assert manifest["repository"] == "pause"


class Store(BaseHTTPRequestHandler):
    """A stand-in for a store that has everything."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_words: Any) -> None:
        """Quiet."""


def test_it_asks_the_store_that_shows_a_certificate_of_the_site_alone(run_module: Run, tmp_path: Path) -> None:
    names, now = ServedNames(("127.0.0.1",), ("127.0.0.1",)), datetime.now(UTC)
    own, another = make_identity(names, now), make_identity(names, now)
    blob = {"repository": "files/runc", "digest": DIGEST}
    with https_server(tmp_path, own.store, Store) as url:
        words = {"url": url, "data": str(tmp_path), "blobs": [blob]}
        assert run_module("pai_store", ca=own.bundle, **words)["missing_blobs"] == []
        with pytest.raises(ModuleFailedError, match="certificate verify failed"):
            run_module("pai_store", ca=another.bundle, **words)
        # before a run has brought its own certificate there
        assert run_module("pai_store", check=True, ca=another.bundle, **words)["missing_blobs"] == [0]


@pytest.mark.parametrize("words", [{"manifest": OUTSIDE}, {"layer": OUTSIDE}, {"layer": "x"}])
def test_bundle_escape_no_image_sends_a_file_of_the_dev_box(action: Any, tmp_path: Path, words: Any) -> None:
    with pytest.raises(AnsibleActionFail, match="no sha256 digest"):
        action.image_contents(image(tmp_path, **words))


def test_blobs_go_in_batches_and_what_is_one_file_once(action: Any, tmp_path: Path) -> None:
    def blob(digest: str, repository: str, size: int) -> dict[str, str]:
        path = tmp_path / digest
        path.write_bytes(b"x" * size)
        return {"digest": digest, "repository": repository, "path": str(path)}

    small, large, shared = blob("a", "one", 4), blob("b", "one", 50), blob("a", "two", 4)
    empty = {"digest": "e", "repository": "one", "content": ""}
    assert list(action.batches([small, large, empty, shared], 10)) == [[small, shared], [large], [empty]]
    assert list(action.batches([small, large, shared], 100)) == [[small, shared, large]]
    assert list(action.batches([])) == []
    many = [blob(f"m{number}", "one", 5) for number in range(5)]
    assert [len(batch) for batch in action.batches(many, 10)] == [2, 2, 1]
