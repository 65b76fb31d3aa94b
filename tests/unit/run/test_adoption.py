"""What a cluster has already when a site with storages is planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.client import NoClusterError
from pai_install.cluster.read import mounts
from pai_install.errors import ExitCode
from pai_install.plan.model import Inventory
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.run.adoption import adoption_refusal, with_adopted
from pai_install.site import Site, load_site
from pai_install.site.load import SERVICES
from pai_install.storage.compile import grants_of
from pai_install.storage.objects import secrets, volumes
from tests.errors import raises
from tests.unit.cli.stub_environment import write_site
from tests.unit.cluster.fake import FakeCluster

STORAGES = """\
storages:
  - {name: data, type: nfs, server: nas, path: /data, share: false}
authentication:
  group-manager:
    default-group: {groupname: default, extension: {acls: {storageConfigs: [data]}}}
    grouplist:
      - {groupname: vision, extension: {acls: {storageConfigs: [data]}}}
"""
INVENTORY = Inventory({}, {"pai_settings": {"addon.storages": {"volumes": "new"}}}, {"master": {}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_site(tmp_path / "cluster")
    (made / SERVICES).write_text(STORAGES)
    return made


def by_hand(path: str = "/data") -> FakeCluster:
    """As OpenPAI's manual has it: a PV and a PVC in `default`."""
    pv = {
        "kind": "PersistentVolume",
        "metadata": {"name": "data-pv"},
        "spec": {"nfs": {"server": "nas", "path": path}, "persistentVolumeReclaimPolicy": "Delete"},
    }
    pvc = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"volumeName": "data-pv"},
    }
    return FakeCluster.of(pv, pvc)


def observed(settings: str = "old", *, joined: bool = True) -> Observation:
    record = RoleRecord(settings={"volumes": settings})
    membership = Membership(control_plane=joined, joined=joined)
    seen = Observed(hostname="master", kubernetes=membership, roles={"addon.storages": record})
    return Observation(INVENTORY, {"master": seen})


def adopted(folder: Path, api: Any, observation: Observation) -> tuple[Site, list[str], Any]:
    said: list[str] = []
    site, findings = with_adopted(load_site(folder).site, observation, INVENTORY, api, said.append)
    return site, said, findings


def test_what_was_made_by_hand_is_generation_one_under_its_own_names(folder: Path) -> None:
    api = by_hand()
    site, said, findings = adopted(folder, api, observed())
    assert (len(said), findings) == (1, ())
    assert load_site(folder).site.rotations == site.rotations
    grants = grants_of(site)
    assert [(it.claim, it.volume) for it in grants] == [("data", "data-pv"), ("data", "vision-data-g1")]
    ours = [it for it in volumes(grants) if it["metadata"].get("namespace") == "default" or "data-pv" in str(it)]
    assert [it.get("spec") for it in ours] == [{"persistentVolumeReclaimPolicy": "Retain"}, None]
    assert {it["metadata"]["labels"]["share"] for it in ours} == {"false"}
    assert list(secrets(grants)) == []
    again, said, _ = adopted(folder, api, observed())
    assert (again.rotations, said) == (site.rotations, [])


def test_another_place_is_refused_before_anything_is_made(folder: Path, snapshot: SnapshotAssertion) -> None:
    site, said, findings = adopted(folder, by_hand("/other"), observed())
    assert (site.rotations, said) == ({}, [])
    error = adoption_refusal(findings)
    assert error.exit_code == ExitCode.PREFLIGHT_FAILED
    assert error.details == snapshot


@pytest.mark.parametrize("observation", [observed("new"), observed(joined=False), Observation(INVENTORY, {})])
def test_a_cluster_that_has_them_or_is_none_is_not_asked(folder: Path, observation: Observation) -> None:
    api = by_hand()
    assert adopted(folder, api, observation)[0].rotations == {}
    assert api.calls == []


def test_an_api_that_does_not_answer_stops_no_run(folder: Path) -> None:
    api = by_hand()

    def refuse(*_: object) -> None:
        raise NoClusterError({"master": "connection refused"})

    api.list = refuse  # type: ignore[method-assign,assignment]
    assert adopted(folder, api, observed())[0].rotations == {}
    with raises("no-control-plane-answers", kind=NoClusterError):
        mounts(api, ["default"], "")
