from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.components import requirements
from pai_install.components.catalogue import load_catalogue
from pai_install.components.fetch import open_source
from pai_install.components.model import PinnedComponent
from pai_install.components.requirements import PROBES, check_disk, missing
from tests.errors import raises


def test_only_what_is_missing_is_named_once_and_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seccomp.h").touch()
    probes = {"libseccomp-dev": f"{tmp_path}/seccomp.h", "gcc": "no-such-command", "apt": "sh", "make": "/nowhere"}
    monkeypatch.setattr(requirements, "PROBES", probes)
    assert missing(["make", "gcc", "libseccomp-dev", "apt", "gcc"]) == ("gcc", "make")


def test_every_package_the_catalogue_names_can_be_probed() -> None:
    catalogue = load_catalogue()
    for name in ("modules", "upstream"):
        source = open_source(catalogue, name)
        for component, description in catalogue.components.items():
            for version in filter(lambda it: description.has(it, name), description.versions):
                assert set(source.debian_packages(PinnedComponent(component, version))) <= set(PROBES)


def test_enough_disk_passes_also_for_a_folder_to_be_made(tmp_path: Path) -> None:
    check_disk(tmp_path / "a/b/c", 1)


def test_too_little_disk_names_need_and_rest(tmp_path: Path) -> None:
    with raises("disk-space-low", "1048576.0") as refused:
        check_disk(tmp_path, 1 << 30)
    assert "XDG_CACHE_HOME" in refused.value.remedy
