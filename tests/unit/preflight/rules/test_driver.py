"""What a driver's installation needs and meets, where the site wants one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site import Site
from tests.unit.preflight.machines import CONFIG, DRIVER, findings_of, read_site

LOADED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.247.01  Thu"


@pytest.fixture
def wishing(tmp_path: Path) -> Site:
    return read_site(tmp_path / "wishing", config=CONFIG + DRIVER)


def verdict(site: Site, check: str, **evidence: Any) -> tuple[str, str]:
    found = findings_of(site, check, {"worker1": evidence})["worker1"]
    return found.verdict.value, found.message


@pytest.mark.parametrize("check", ["driver-headers", "driver-secure-boot", "driver-in-use"])
def test_nobody_asks_where_the_driver_is_the_admins(site: Site, wishing: Site, check: str) -> None:
    evidence: dict[str, Any] = {"worker1": {}, "worker2": {}}
    assert "worker1" not in findings_of(site, check, evidence)
    assert list(findings_of(wishing, check, evidence)) == ["worker1"], "the others have no NVIDIA devices"


@pytest.mark.parametrize(("headers", "expected"), [("installed", "PASS"), ("available", "PASS"), ("", "FAIL")])
def test_headers_of_the_running_kernel(wishing: Site, headers: str, expected: str) -> None:
    assert verdict(wishing, "driver-headers", hardware={"headers": headers})[0] == expected


def test_a_container_builds_no_modules(wishing: Site) -> None:
    assert (
        verdict(wishing, "driver-headers", hardware={"headers": ""}, identity={"container": "systemd-nspawn"})[0]
        == "PASS"
    )


@pytest.mark.parametrize(
    ("on", "enrolled", "expected"), [(False, False, "PASS"), (True, True, "PASS"), (True, False, "FAIL")]
)
def test_secure_boot_is_said_beforehand(wishing: Site, on: bool, enrolled: bool, expected: str) -> None:
    hardware = {"secure_boot": on, "dkms_key_enrolled": enrolled}
    assert verdict(wishing, "driver-secure-boot", hardware=hardware)[0] == expected


@pytest.mark.parametrize(
    ("loaded", "nouveau", "users", "expected", "words"),
    [
        ("", False, 0, "PASS", "no driver of another branch"),
        ("NVRM version: NVIDIA UNIX 580.65", False, 7, "PASS", "no driver of another branch"),
        (LOADED, False, 0, "WARN", "the driver 535 stays loaded until a reboot"),
        (LOADED, False, 1, "FAIL", "1 program uses the driver 535"),
        (LOADED, False, 3, "FAIL", "3 programs use the driver 535"),
        (LOADED, False, None, "UNKNOWN", "only root can read"),
        ("", True, 0, "WARN", "nouveau drives the NVIDIA devices"),
    ],
)
def test_no_driver_is_exchanged_under_programs(
    wishing: Site, loaded: str, nouveau: bool, users: int | None, expected: str, words: str
) -> None:
    seen = verdict(
        wishing,
        "driver-in-use",
        hardware={"nvidia_driver": loaded, "nouveau": nouveau},
        devices={"gpu_containers": 0, "gpu_processes": users},
    )
    assert seen[0] == expected
    assert words in seen[1]


def test_a_driver_that_apply_will_install_is_no_warning(wishing: Site, snapshot: SnapshotAssertion) -> None:
    assert verdict(wishing, "nvidia-driver", hardware={"nvidia_driver": ""}) == snapshot
