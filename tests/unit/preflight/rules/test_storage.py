"""Storage servers, and the machines that are to mount from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.preflight import needs
from pai_install.preflight.judge import judge
from pai_install.site import Site
from tests.unit.preflight.machines import LAYOUT, QUOTAS, STORAGES, STORING, findings_of, fleet, mount, read_site


@pytest.fixture
def storing(tmp_path: Path) -> Site:
    """worker2 serves; the workers also mount from nas."""
    return read_site(tmp_path / "storing", STORING, services=STORAGES)


def answer(how: str, why: str = "") -> dict[str, Any]:
    return {"exports": [{"answer": how, "why": why}]}


def test_workers_ask_the_servers_that_the_site_does_not_set_up(storing: Site) -> None:
    asked = needs.questions(storing)
    assert asked["worker1"]["preflight_exports"] == [{"server": "nas", "path": "/export/data", "port": 20490}]
    assert asked["master"]["preflight_exports"] == []


@pytest.mark.parametrize("how", ["served", "unclear"])
def test_a_server_that_answers_is_enough(storing: Site, how: str) -> None:
    found = findings_of(storing, "storage-servers", {"worker1": answer(how, "it wants a login")})
    assert found["worker1"].verdict is Verdict.PASS
    assert ("more cannot be seen" in found["worker1"].value) is (how == "unclear")
    assert set(found) == {"worker1", "worker2"}


@pytest.mark.parametrize(
    ("how", "line", "said"),
    [("silent", "5:5", "does not answer (timed out)"), ("missing", "6:5", "does not serve it to this machine")],
)
def test_a_storage_that_cannot_be_mounted_is_told_at_its_line(storing: Site, how: str, line: str, said: str) -> None:
    found = findings_of(storing, "storage-servers", {"worker1": answer(how, "timed out")})["worker1"]
    assert found.verdict is Verdict.FAIL
    assert f"services-configuration.yaml:{line}: nas:/export/data: nas {said}" in found.value


def test_an_answer_for_another_number_of_storages_is_no_answer(storing: Site) -> None:
    found = findings_of(storing, "storage-servers", {"worker1": {"exports": []}})
    assert found["worker1"].verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("kind", "verdict"), [("ext4", "PASS"), ("xfs", "PASS"), ("overlay", "FAIL"), ("tmpfs", "FAIL")]
)
def test_what_is_served_is_on_a_disk(storing: Site, kind: str, verdict: str) -> None:
    mounts = {"mounts": [mount("/share", mount_point="/share", filesystem=kind)]}
    found = findings_of(storing, "storage-folder", {"worker2": mounts})
    assert {name: item.verdict.value for name, item in found.items()} == {"worker2": verdict}


@pytest.mark.parametrize(
    ("services", "kept", "verdicts"), [(QUOTAS, True, ["PASS"]), (QUOTAS, False, ["FAIL"]), ("", False, [])]
)
def test_quotas_that_the_site_asks_for_are_kept(tmp_path: Path, services: str, kept: bool, verdicts: list[str]) -> None:
    site = read_site(tmp_path / "limited", STORING, services=STORAGES.replace(QUOTAS, services))
    mounts = {"mounts": [mount("/share", mount_point="/srv", filesystem="xfs", project_quotas=kept)]}
    found = findings_of(site, "storage-quotas", {"worker2": mounts})
    assert [item.verdict.value for item in found.values()] == verdicts
    if verdicts == ["FAIL"]:
        assert "/srv (xfs) does not enforce project quotas" in found["worker2"].message
        assert "prjquota" in found["worker2"].remedy


def test_a_disk_for_data_runs_no_programs(storing: Site) -> None:
    noexec = {"mounts": [mount("/share", noexec=True)]}
    assert findings_of(storing, "file-systems", {"worker2": noexec})["worker2"].verdict is Verdict.PASS


def test_another_server_at_the_port_is_told(storing: Site, snapshot: SnapshotAssertion) -> None:
    listeners = {"listeners": [{"protocol": "tcp", "port": 2049, "program": ""}]}
    found = findings_of(storing, "ports", {"worker2": listeners, "worker1": listeners})
    assert found["worker2"].value == snapshot
    assert found["worker1"].verdict is Verdict.PASS


def test_nodes_try_to_reach_the_server(storing: Site) -> None:
    assert 2049 in needs.peers(storing)["master"]["worker2"]
    assert 2049 in needs.peers(storing)["worker1"]["worker2"]


def test_a_machine_that_is_no_node_is_not_asked_for_what_nodes_need(tmp_path: Path) -> None:
    alone = LAYOUT.replace(
        'hostip: 10.0.0.3, machine-type: cpu, pai-worker: "true"',
        'hostip: 10.0.0.3, machine-type: cpu, pai-storage: "true"',
    )
    site = read_site(tmp_path / "alone", alone)
    old = {"worker2": {"system": {"kernel": "5.4.0"}, "modules": {"missing": ["overlay"]}}}
    found = {finding.id: finding for finding in judge(site, fleet(old), {}) if finding.subject == "worker2"}
    assert not {"kernel", "kernel-modules", "cgroups", "swap", "docker", "kubernetes", "leftovers"} & set(found)
    assert {"sudo", "ports", "disk-space", "storage-folder", "clock"} <= set(found)
    assert [item.id for item in found.values() if item.verdict is Verdict.FAIL] == []
    asked = needs.questions(site)["worker2"]
    assert asked["preflight_modules"] == []
    assert {tuple(peer["tcp"]) for peer in asked["preflight_peers"]} == {(22,)}
    assert "/share" in asked["preflight_paths"]
