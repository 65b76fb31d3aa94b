"""An image of pai-install itself: what is in it, what changes its key, and that its lock has every licence."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path
from typing import cast

import pytest

from pai_install.components.assembled import Assembled, library_nodes, python_version
from pai_install.components.catalogue import Catalogue, PythonBuild, load_catalogue
from pai_install.components.image import LayerEntry, write_layer
from pai_install.components.model import PinnedComponent
from pai_install.components.modules import Modules
from pai_install.components.report import catalogue_report
from pai_install.components.upstream import Releases
from tests.errors import raises

PICK = PinnedComponent("console", "own")
CATALOGUE = load_catalogue()
BUILD = cast("PythonBuild", CATALOGUE.components["console"].build)
LOCKED = re.findall(r"^([\w-]+)==", BUILD.lock_file.read_text(), re.MULTILINE)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "pai_install"
    for name in ("__init__.py", "jobs/read.py", "cli/main.py", "components/wrappers/x/go.mod", "__pycache__/x.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def key(library: Path, catalogue: Catalogue = CATALOGUE) -> str:
    return Assembled(catalogue, Modules(catalogue, "amd64"), "amd64", library).key(PICK)


def with_build(**values: object) -> Catalogue:
    component = CATALOGUE.components["console"]
    assert component.build
    changed = component.model_copy(update={"build": component.build.model_copy(update=values)})
    return CATALOGUE.model_copy(update={"components": {**CATALOGUE.components, "console": changed}})


def test_every_source_makes_the_same_image(library: Path) -> None:
    upstream = Assembled(CATALOGUE, Releases(CATALOGUE, architecture="amd64"), "amd64", library)
    assert upstream.key(PICK) == key(library)
    assert upstream.pinned(PICK) == {}
    assert "apt" in upstream.debian_packages(PICK)
    assert 0 < upstream.disk_mb(PICK) < 1000


def test_all_else_is_the_other_sources(library: Path) -> None:
    other, pick = Modules(CATALOGUE, "amd64"), PinnedComponent("haproxy", "lts")
    assembled = Assembled(CATALOGUE, other, "amd64", library)
    assert assembled.key(pick) == other.key(pick)
    assert assembled.debian_packages(pick) == other.debian_packages(pick)
    assert assembled.disk_mb(pick) == other.disk_mb(pick)
    assert assembled.name == "modules"


def test_a_change_of_the_library_is_another_image(library: Path, tmp_path: Path) -> None:
    before, other = key(library), tmp_path / "other/pai_install"
    other.parent.mkdir()
    library.rename(other)
    assert key(other) == before  # wherever it lies
    moved = tmp_path / "changed/pai_install"
    moved.parent.mkdir()
    other.rename(moved)
    (moved / "jobs/read.py").write_text("x = 1\n")
    assert key(moved) != before


def test_folders_that_the_image_lacks_do_not_change_it(library: Path, tmp_path: Path) -> None:
    before, other = key(library), tmp_path / "other/pai_install"
    (library / "cli/main.py").write_text("x = 1\n")
    (library / "components/wrappers/x/go.mod").write_text("x\n")
    other.parent.mkdir()
    library.rename(other)
    assert key(other) == before
    found = {node.path for node in library_nodes(other, BUILD.without)}
    assert found == {"opt/pai-install/pai_install/__init__.py", "opt/pai-install/pai_install/jobs/read.py"}


def test_lock_packages_and_command_are_part_of_the_key(library: Path, tmp_path: Path) -> None:
    lock = tmp_path / "other.lock"
    lock.write_text(BUILD.lock_file.read_text() + "\n")
    changes: list[dict[str, object]] = [
        {"lock": str(lock)}, {"packages": ("python3-minimal",)}, {"left_out": ()}, {"module": "x"}, {"user": "1:1"},
    ]  # fmt: skip
    keys = {key(library, with_build(**change)) for change in changes}
    assert len(keys | {key(library)}) == len(changes) + 1


def test_every_locked_wheel_has_a_licence_and_no_other() -> None:
    assert sorted(BUILD.licences) == LOCKED


@pytest.mark.parametrize("paths", [["usr/bin/python3.10"], []])
def test_the_python_of_the_packages_must_run_the_library(paths: list[str]) -> None:
    with raises("python-not-supported"):
        python_version([LayerEntry(path, content=b"") for path in paths])
    assert python_version([LayerEntry("usr/bin/python3.13", content=b"")]) == "3.13"


def test_a_program_may_be_given_the_low_ports(tmp_path: Path) -> None:
    nodes = [LayerEntry("bin/python3", content=b"x", low_ports=True), LayerEntry("bin/other", content=b"x")]
    layer = write_layer(nodes, tmp_path)
    with tarfile.open(layer.path) as archive:
        found = {member.name: member.pax_headers for member in archive}
    # struct vfs_cap_data, revision 2 and effective: CAP_NET_BIND_SERVICE is bit 10
    granted = b"\x01\x00\x00\x02" + (1 << 10).to_bytes(4, "little") + bytes(12)
    assert found["bin/python3"]["SCHILY.xattr.security.capability"].encode() == granted
    assert not found["bin/other"]


def test_components_list_has_the_wheels(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = (one for one in catalogue_report(CATALOGUE).components if one.component == "console")
    assert found.images == ("pai-console",)
    assert found.wheels == dict(BUILD.licences)
