"""A real build of one small program through the module proxy, and the image made from it."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from pai_install.components.catalogue import Catalogue, Component, load_catalogue
from pai_install.components.fetch import fetch, open_source
from pai_install.components.golang import go_version
from pai_install.components.model import PinnedComponent, Selection

PACKAGE = "github.com/containernetworking/plugins/plugins/main/loopback"


@pytest.fixture
def small() -> Catalogue:
    """The catalogue with only the loopback plugin left, as an archive and as an image."""
    catalogue = load_catalogue()
    whole = catalogue.components["cni-plugins"]
    plain = whole.model_dump(by_alias=True)
    plain["build"]["packages"] = [PACKAGE]
    plain["files"]["cni-plugins"]["programs"] = ["loopback"]
    plain["images"] = {
        "loopback": {"tag": "v{version}", "from": "docker.io/x/loopback", "programs": {"loopback": "/loopback"}}
    }
    return catalogue.model_copy(update={"components": {"cni-plugins": Component.model_validate(plain)}})


def test_a_program_is_built_from_verified_modules_and_runs(small: Catalogue, tmp_path: Path) -> None:
    told: list[str] = []
    selection = Selection("1.36.3", "modules", (PinnedComponent("cni-plugins", "1.9.1"),))
    cache = tmp_path / "cache"
    result = fetch(selection, open_source(small, "modules"), cache, told.append)
    with tarfile.open(result.file("cni-plugins").path) as archive:
        assert archive.getnames() == ["./loopback"]
        archive.extractall(tmp_path / "out", filter="data")
    answer = subprocess.run([tmp_path / "out/loopback"], capture_output=True, text=True, check=False)
    assert "CNI loopback plugin v1.9.1" in answer.stdout + answer.stderr
    assert result.image("loopback").tag == "v1.9.1"
    assert any("building loopback" in line for line in told)
    # the Go client's caches are gone; only results stay (and a toolchain, on a box without Go)
    assert {path.name for path in cache.iterdir()} <= {"entries", "lock", "toolchains"}
    kept = cache / "toolchains/go1.26.8/bin/go"
    assert not kept.exists() or go_version(kept)
    assert fetch(selection, open_source(small, "modules"), cache, pytest.fail) == result
