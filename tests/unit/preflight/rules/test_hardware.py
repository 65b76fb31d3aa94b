"""Memory, processors, accelerators against the hardware type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.site import Site
from tests.unit.preflight.machines import GIB, LAYOUT, findings_of, read_site

A100 = [{"address": f"0000:0{bus}:00.0", "vendor": "10de", "revision": "a1"} for bus in (1, 2, 3)]


@pytest.mark.parametrize(
    ("seen", "verdict"), [(8 * GIB, "PASS"), (7.5 * GIB, "PASS"), (7 * GIB, "FAIL"), (16 * GIB, "PASS")]
)
def test_memory(site: Site, seen: float, verdict: str) -> None:
    found = findings_of(site, "memory", {"worker2": {"hardware": {"memory_bytes": int(seen)}}})["worker2"]
    assert found.verdict == verdict
    assert "GiB" in found.value


def test_memory_of_a_control_plane(tmp_path: Path) -> None:
    site = read_site(
        tmp_path / "small", LAYOUT.replace("cpu: {mem: 8Gi, cpu: {vcore: 4}}", "cpu: {mem: 1Gi, cpu: {vcore: 1}}")
    )
    small = {"hardware": {"memory_bytes": 1 * GIB, "cpus": 1}}
    found = findings_of(site, "memory", {"master": small, "worker2": small})
    assert [found[name].verdict for name in ("master", "worker2")] == ["FAIL", "PASS"]
    found = findings_of(site, "cpus", {"master": small, "worker2": small})
    assert [found[name].verdict for name in ("master", "worker2")] == ["FAIL", "PASS"]


def test_memory_that_nobody_knows(site: Site) -> None:
    found = findings_of(site, "memory", {"worker2": {"hardware": {"memory_bytes": None}}})
    assert found["worker2"].verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("seen", "verdict"), [(4, "PASS"), (96, "PASS"), (3, "FAIL")])
def test_cpus(site: Site, seen: int, verdict: str) -> None:
    assert findings_of(site, "cpus", {"worker1": {"hardware": {"cpus": seen}}})["worker1"].verdict == verdict


@pytest.mark.parametrize(
    ("pci", "verdict", "word"),
    [
        (A100[:2], "PASS", "2 accelerators"),
        (A100[:1], "FAIL", "fewer"),
        (A100, "WARN", "more"),
        ([], "FAIL", "no accelerator"),
        ([A100[0], {**A100[1], "revision": "ff"}], "FAIL", "fallen off the bus"),
        ([*A100[:2], {"address": "0000:00:02.0", "vendor": "8086"}], "PASS", "2 accelerators"),
    ],
)
def test_accelerators(site: Site, pci: list[dict[str, Any]], verdict: str, word: str) -> None:
    found = findings_of(site, "accelerators", {"worker1": {"hardware": {"pci": pci}}})["worker1"]
    assert found.verdict == verdict
    assert word in found.message


def test_only_types_with_accelerators_are_asked(site: Site) -> None:
    assert set(findings_of(site, "accelerators")) == {"worker1"}


def test_a_container_has_none_to_count(site: Site) -> None:
    changes = {"worker1": {"hardware": {"pci": []}, "identity": {"container": "systemd-nspawn"}}}
    found = findings_of(site, "accelerators", changes)["worker1"]
    assert found.verdict is Verdict.SKIP
    assert "systemd-nspawn" in found.message


@pytest.mark.parametrize(
    ("kind", "verdict"), [("amd.com/gpu", "FAIL"), ("nvidia.com/mig-1g.5gb", "PASS"), ("example.org/npu", "UNKNOWN")]
)
def test_other_types(tmp_path: Path, kind: str, verdict: str) -> None:
    site = read_site(tmp_path / "other", LAYOUT.replace("nvidia.com/gpu", kind).replace("count: 2", "count: 14"))
    assert findings_of(site, "accelerators")["worker1"].verdict == verdict


def test_driver(site: Site) -> None:
    assert set(findings_of(site, "nvidia-driver")) == {"worker1"}
    assert findings_of(site, "nvidia-driver")["worker1"].verdict is Verdict.PASS
    none = findings_of(site, "nvidia-driver", {"worker1": {"hardware": {"nvidia_driver": ""}}})["worker1"]
    assert none.verdict is Verdict.WARN
    nouveau = findings_of(site, "nvidia-driver", {"worker1": {"hardware": {"nvidia_driver": "", "nouveau": True}}})
    assert "nouveau" in nouveau["worker1"].message
