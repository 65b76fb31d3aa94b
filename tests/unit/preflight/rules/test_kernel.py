"""Kernel, modules, control groups, limits, swap."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.site import Site
from tests.unit.preflight.machines import findings_of

CONTAINER = {"identity": {"container": "lxc"}}


@pytest.mark.parametrize(
    ("kernel", "verdict"),
    [("5.4.0-150-generic", "FAIL"), ("5.13.0", "PASS"), ("6.1.0-18-amd64", "PASS"), ("5.15.0-91-generic", "PASS")],
)
def test_kernel(site: Site, kernel: str, verdict: str) -> None:
    assert findings_of(site, "kernel", {"master": {"system": {"kernel": kernel}}})["master"].verdict == verdict


def test_modules(site: Site) -> None:
    gone = {"modules": {"missing": ["vxlan"], "tree": True, "other_trees": ["6.1.0-20-amd64"]}}
    found = findings_of(site, "kernel-modules", {"worker1": gone})["worker1"]
    assert (found.verdict, found.value) == (Verdict.FAIL, "vxlan")
    assert "linux-image" in found.remedy


def test_modules_of_an_updated_kernel(site: Site) -> None:
    gone = {"modules": {"missing": ["vxlan"], "tree": False, "other_trees": ["6.1.0-20-amd64"]}}
    found = findings_of(site, "kernel-modules", {"worker1": gone})["worker1"]
    assert found.verdict is Verdict.FAIL
    assert "reboot" in found.remedy


def test_modules_in_a_container(site: Site) -> None:
    gone = {"modules": {"missing": ["br_netfilter"]}, **CONTAINER}
    assert findings_of(site, "kernel-modules", {"worker1": gone})["worker1"].verdict is Verdict.SKIP


@pytest.mark.parametrize(
    ("cgroups", "verdict"),
    [
        ({"version": 2, "controllers": ["cpuset", "cpu", "memory", "pids"]}, "PASS"),
        ({"version": 2, "controllers": ["cpuset", "cpu", "pids"]}, "FAIL"),
        ({"version": 1, "controllers": ["cpuset", "cpu", "memory", "pids"]}, "WARN"),
        ({"version": 1, "controllers": ["cpuset", "cpu"]}, "FAIL"),
    ],
)
def test_cgroups(site: Site, cgroups: dict[str, Any], verdict: str) -> None:
    found = findings_of(site, "cgroups", {"worker1": {"cgroups": cgroups}})["worker1"]
    assert found.verdict == verdict
    if verdict == "FAIL":
        assert "memory" in found.message


def test_cgroups_of_a_container_are_those_of_its_host(site: Site) -> None:
    first = {"cgroups": {"version": 1, "controllers": ["cpu"]}, **CONTAINER}
    assert findings_of(site, "cgroups", {"worker1": first})["worker1"].verdict is Verdict.SKIP


def test_limits(site: Site) -> None:
    found = findings_of(site, "process-limits", {"worker1": {"system": {"pid_max": 32768}}})["worker1"]
    assert (found.verdict, found.value) == (Verdict.WARN, "kernel.pid_max = 32768")
    nobody = findings_of(site, "process-limits", {"worker1": {"system": {"threads_max": None}}})
    assert (nobody["worker1"].verdict, nobody["worker1"].message) == (
        Verdict.UNKNOWN,
        "no evidence of system.threads_max",
    )


@pytest.mark.parametrize(
    ("swap", "words"),
    [
        ({"active": ["/dev/sda3"]}, ["swap is on", "on now: /dev/sda3"]),
        ({"fstab": ["/swapfile none swap sw 0 0"]}, ["starts at boot", "/etc/fstab: /swapfile"]),
        ({"units": ["dev-sda3.swap"]}, ["starts at boot", "unit dev-sda3.swap"]),
        ({"zram": ["/etc/systemd/zram-generator.conf"]}, ["starts at boot", "zram: /etc/systemd"]),
    ],
)
def test_swap_is_told_with_where_it_comes_from(site: Site, swap: dict[str, Any], words: list[str]) -> None:
    found = findings_of(site, "swap", {"worker1": {"swap": swap}})["worker1"]
    assert found.verdict is Verdict.WARN
    assert all(word in f"{found.message} {found.value}" for word in words)


def test_swap_of_a_containers_host_is_not_its_own(site: Site) -> None:
    active = {"swap": {"active": ["/dev/sda3"]}, **CONTAINER}
    assert findings_of(site, "swap", {"worker1": active})["worker1"].verdict is Verdict.PASS
    listed = {"swap": {"active": ["/dev/sda3"], "fstab": ["/swapfile none swap sw 0 0"]}, **CONTAINER}
    found = findings_of(site, "swap", {"worker1": listed})["worker1"]
    assert found.verdict is Verdict.WARN
    assert "sda3" not in found.value
