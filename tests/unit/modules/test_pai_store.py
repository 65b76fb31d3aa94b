"""The component store's action: what it reads on the dev box."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail

from tests.ansible_path import PLAYBOOKS

from .conftest import load

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


@pytest.mark.parametrize("words", [{"manifest": OUTSIDE}, {"layer": OUTSIDE}, {"layer": "x"}])
def test_bundle_escape_no_image_sends_a_file_of_the_dev_box(action: Any, tmp_path: Path, words: Any) -> None:
    with pytest.raises(AnsibleActionFail, match="no sha256 digest"):
        action.image_contents(image(tmp_path, **words))
