"""Which packages are one driver, and what is loaded; versions as Debian, Ubuntu and NVIDIA write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.pai_nvidia import (
    DriverError,
    choose,
    driver_facts,
    driver_of,
    loaded_version,
    parse_madison,
    switches,
    wanted_packages,
)
from hypothesis import given
from hypothesis import strategies as st

MADISON = """\
nvidia-headless-580-server-open | 580.126.20-0ubuntu0.24.04.2 | http://archive noble-updates/restricted amd64 Packages
nvidia-headless-580-server-open | 580.95.05-0ubuntu0.24.04.1 | http://archive noble-security/restricted amd64 Packages
nvidia-headless-580-server-open | 580.126.20-0ubuntu0.24.04.2 | http://archive noble-security/restricted amd64 Packages
nvidia-utils-580-server | 580.95.05-0ubuntu0.24.04.1 | http://archive noble-updates/restricted amd64 Packages
nvidia-fabricmanager-580 | 580.95.05-1 | http://archive noble-updates/multiverse amd64 Packages
nvidia-fabricmanager-580 | 580.95.05-1 | http://archive noble-updates/multiverse Sources
"""


@pytest.mark.parametrize(
    ("os_id", "modules", "packages", "fabric", "expected"),
    [
        ("ubuntu", "open", "distribution", False, {"nvidia-headless-580-server-open", "nvidia-utils-580-server"}),
        (
            "ubuntu", "proprietary", "distribution", True,
            {"nvidia-headless-580-server", "nvidia-utils-580-server", "nvidia-fabricmanager-580"},
        ),
        (
            "debian", "open", "distribution", False,
            {"nvidia-open-kernel-dkms", "nvidia-smi", "libcuda1", "nvidia-persistenced"},
        ),
        (
            "debian", "proprietary", "nvidia", True,
            {
                "nvidia-driver-pinning-580", "nvidia-kernel-dkms", "nvidia-driver-cuda", "nvidia-persistenced",
                "nvidia-fabricmanager",
            },
        ),
        ("ubuntu", "open", "nvidia", False, {"nvidia-driver-pinning-580", "nvidia-open"}),
    ],
)  # fmt: skip
def test_the_names_of_each_source(os_id: str, modules: str, packages: str, fabric: bool, expected: set[str]) -> None:
    assert set(wanted_packages(os_id, 580, modules, packages, fabric=fabric)) == expected


def test_older_branches_have_a_fabric_manager_of_their_name() -> None:
    assert "nvidia-fabricmanager-570" in wanted_packages("ubuntu", 570, "open", "nvidia", fabric=True)


def test_debian_has_no_fabric_manager() -> None:
    with pytest.raises(DriverError, match="no package of the fabric manager"):
        wanted_packages("debian", 550, "open", "distribution", fabric=True)


def test_the_newest_version_that_all_packages_have() -> None:
    offered = parse_madison(MADISON)
    assert offered["nvidia-headless-580-server-open"] == [
        "580.126.20-0ubuntu0.24.04.2", "580.95.05-0ubuntu0.24.04.1",
    ]  # fmt: skip
    version, picked = choose(offered, dict.fromkeys(offered, True), 580)
    assert version == "580.95.05"
    assert picked["nvidia-headless-580-server-open"] == "580.95.05-0ubuntu0.24.04.1"


def test_a_package_with_versions_of_its_own_comes_at_its_newest() -> None:
    offered = {"a": ["580.1.2-1"], "pin": ["580-2", "580-1"]}
    assert choose(offered, {"a": True, "pin": False}, 580)[1] == {"a": "580.1.2-1", "pin": "580-2"}


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        ({"a": ["580.1-1"]}, "no package source has b"),
        ({"a": ["580.1-1"], "b": ["580.2-1"]}, "no version of branch 580 is there of every package: a 580.1; b 580.2"),
        ({"a": ["535.1-1"], "b": ["535.1-1"]}, "no version of branch 580"),
    ],
)
def test_what_cannot_be_one_driver_is_refused(offered: dict[str, list[str]], words: str) -> None:
    with pytest.raises(DriverError, match=words):
        choose(offered, {"a": True, "b": True}, 580)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), min_size=1, max_size=4))
def test_one_version_of_everything_or_none(numbers: list[list[int]]) -> None:
    offered = {f"p{at}": [f"580.{number}-1" for number in each] for at, each in enumerate(numbers)}
    common = set.intersection(*map(set, numbers))
    try:
        version, picked = choose(offered, dict.fromkeys(offered, True), 580)
    except DriverError:
        assert not common
    else:
        assert {driver_of(it) for it in picked.values()} == {version}
        assert version == f"580.{next(number for number in numbers[0] if number in common)}"


@pytest.mark.parametrize(
    ("package", "driver"),
    [("580.126.20-0ubuntu1", "580.126.20"), ("1:580.95.05-1", "580.95.05"), ("550.163.01-2~deb13", "550.163.01")],
)
def test_the_driver_in_a_version(package: str, driver: str) -> None:
    assert driver_of(package) == driver


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.247.01  Tue Mar 11\n", "535.247.01"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.126.20  Release Build\n", "580.126.20"),
        ("", ""),
    ],
)
def test_the_loaded_version(tmp_path: Path, text: str, version: str) -> None:
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").write_text(text)
    assert loaded_version(str(tmp_path)) == version


def test_switches_are_bridges_of_nvidia(tmp_path: Path) -> None:
    for name, vendor, kind in (("1", "0x10de", "0x068000"), ("2", "0x10de", "0x030200"), ("3", "0x8086", "0x068000")):
        folder = tmp_path / "bus/pci/devices" / name
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
    assert switches(str(tmp_path)) == 1
    assert driver_facts(str(tmp_path), str(tmp_path)) == {"driver": "", "nouveau": False, "switches": 1}
