"""The file that remembers rotations of storages."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pai_install.site import load_site
from pai_install.site.rotations import (
    OldGeneration,
    StorageRotationState,
    definition_of,
    read_rotations,
    rotations_file,
    save_rotations,
)
from tests.errors import raises
from tests.unit.site.sites import write_site

SERVICES = """\
storages:
  - {name: homes, type: smb, server: nas, share-name: h, username: u, password: pl4nted, mount-options: [a=b]}
"""


def test_a_definition_is_kept_whole_with_its_secret_and_for_its_owner_only(tmp_path: Path) -> None:
    folder = write_site(tmp_path, services=SERVICES)
    (entry,) = load_site(folder).site.services.storages or ()
    old = OldGeneration(generation=1, claim="homes", definition=definition_of(entry), groups=("a",))
    rotation = StorageRotationState(
        generation=2, claim="homes-g2", last=2, older=(old,), changes={"mount-options": ("x", "y")}
    )
    save_rotations(folder, {"homes": rotation})
    found = load_site(folder).site.rotations
    assert found == {"homes": rotation}
    again = found["homes"].older[0].entry
    assert again == entry
    assert again.password is not None
    assert again.password.get_secret_value() == "pl4nted"
    assert "pl4nted" not in repr(found)
    path = rotations_file(folder)
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


def test_a_site_without_it_was_never_rotated(tmp_path: Path) -> None:
    assert read_rotations(tmp_path) == {}
    assert not rotations_file(tmp_path).parent.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"data": {"generation": 0, "password": "pl4nted"}}', "\udcff"])
def test_a_file_of_another_kind_is_refused_without_its_content(tmp_path: Path, text: str) -> None:
    rotations_file(tmp_path).parent.mkdir()
    rotations_file(tmp_path).write_bytes(text.encode(errors="surrogateescape"))
    with raises("rotations-file-invalid") as caught:
        read_rotations(tmp_path)
    assert "pl4nted" not in str(caught.value.details) + caught.value.message
