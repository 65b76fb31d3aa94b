"""A storage as it is shown: (site, what the API said) -> why a grant is or is not bound, and who uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.read import Mounts
from pai_install.json_schema import Report, schema_of
from pai_install.kube.model import Pod
from pai_install.kube.objects import JsonObject
from pai_install.kube.volumes import Volume, VolumeClaim
from pai_install.report.storage import GrantShown, StorageReport, storage_shown, storage_text
from pai_install.report.storages import StoragesReport, storages_report, storages_text
from pai_install.site.load import load_site
from pai_install.site.model import Site
from tests.unit.site.sites import write_site

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
SERVICES = """\
storages:
  - {name: data, type: nfs, server: nas, path: /data, capacity: 10Ti, read-only: true}
  - {name: homes, type: smb, server: nas, share-name: h, username: u, password: pl4nted, mount-options: [pass=pl4nted]}
  - {name: files, type: azureFile, account-name: acc, account-key: a2V5, share-name: f}
  - {name: blobs, type: azureBlob, account-name: acc, account-key: a2V5, container-name: c}
  - {name: scratch, type: hostPath, path: /scratch, access-mode: ReadWriteOnce}
  - {name: disk, type: local, path: /disk, machine: w1}
authentication:
  group-manager:
    grouplist:
      - {groupname: Team_A, extension: {acls: {storageConfigs: [data, homes]}}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return load_site(write_site(tmp_path, services=SERVICES)).site


def pv(phase: str = "Bound", claim: str = "data", size: str = "10Ti", **more: Any) -> JsonObject:
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": "team-a-data-g1", **more.pop("metadata", {})},
        "spec": {"capacity": {"storage": size}, "claimRef": {"name": claim, "namespace": "team-a"}},
        "status": {"phase": phase, **more},
    }


def pvc(phase: str = "Bound", name: str = "data", volume: str = "team-a-data-g1", **metadata: Any) -> JsonObject:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "team-a", **metadata},
        "spec": {"volumeName": volume, "resources": {"requests": {"storage": "10Ti"}}},
        "status": {"phase": phase},
    }


def pod(name: str, claim: str = "data", node: str = "w1", phase: str = "Running") -> JsonObject:
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}, {"name": "e", "emptyDir": {}}]
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"volumes": volumes, **({"nodeName": node} if node else {})},
        "status": {"phase": phase},
    }


def seen(*objects: JsonObject) -> Mounts:
    def of(kind: str) -> list[JsonObject]:
        return [item for item in objects if item["kind"] == kind]

    return Mounts(
        tuple(map(Volume.parse, of("PersistentVolume"))),
        tuple(map(VolumeClaim.parse, of("PersistentVolumeClaim"))),
        tuple(map(Pod.parse, of("Pod"))),
    )


LEAVING = {"deletionTimestamp": "2026-11-22T00:00:00Z"}


@pytest.mark.parametrize(
    ("objects", "bound", "why"),
    [
        ([pv(), pvc()], True, ""),
        ([], False, "the PVC does not exist: pai-install apply makes it"),
        ([pv()], False, "the PVC does not exist: pai-install apply makes it"),
        ([pvc("Pending")], False, "the PV does not exist: pai-install apply makes it"),
        ([pvc("Lost"), pv()], False, "the PV does not exist: pai-install apply makes it"),
        ([pv(), pvc(**LEAVING)], True, "the PVC is being deleted, and stays until no pod uses it"),
        ([pv(metadata=LEAVING), pvc()], True, "the PV is being deleted"),
        ([pvc("Bound", volume="by-hand")], True, "the PVC names another PV, by-hand"),
        ([pv("Bound", "other"), pvc("Pending")], False, "the PV is for another claim, team-a/other"),
        ([pv("Released"), pvc("Pending")], False, "the PV is Released: its claim was deleted"),
        ([pv("Failed", message="no room"), pvc("Pending")], False, "the PV has Failed: no room"),
        ([pv("Available", size="1Ti"), pvc("Pending")], False, "the PVC asks for 10Ti, and the PV has 1Ti"),
        ([pv("Available"), pvc("Pending")], False, "Kubernetes has not bound them yet"),
        ([pv(""), pvc("")], None, "the API says no phase"),
    ],
)
def test_whether_a_grant_is_bound_and_why_not(
    site: Site, objects: list[JsonObject], bound: bool | None, why: str
) -> None:
    (grant,) = storage_shown(site, "data", seen(*objects)).grants
    assert grant == GrantShown("Team_A", "team-a", "data", "team-a-data-g1", 1, True, bound, why)


def test_pods_that_use_it_are_counted_by_node(site: Site, snapshot: SnapshotAssertion) -> None:
    pods = [
        pod("a"),
        pod("b"),
        pod("c", node="", phase="Pending"),
        pod("d", claim="homes"),
        pod("e", phase="Succeeded"),
    ]
    shown = storage_shown(site, "data", seen(pv(), pvc(), *pods))
    assert [(one.name, one.node, one.phase) for one in shown.consumers] == [
        ("a", "w1", "Running"),
        ("b", "w1", "Running"),
        ("c", "", "Pending"),
    ]
    assert shown.nodes == {"w1": 2}
    text = storage_text(shown)
    assert text == snapshot


def test_a_pair_that_the_site_no_longer_grants_is_named(site: Site, snapshot: SnapshotAssertion) -> None:
    labels = {"pai-install/storage": "disk", "pai-install/generation": "2"}
    shown = storage_shown(
        site, "disk", seen(pvc(name="disk-g2", volume="team-a-disk-g2", labels=labels), pod("a", "disk-g2"))
    )
    (grant,) = shown.grants
    assert (grant.group, grant.claim, grant.generation, grant.bound) == ("", "disk-g2", 2, True)
    assert grant.why == snapshot
    assert [one.name for one in shown.consumers] == ["a"], "it still uses it"


def test_what_stands_in_for_a_copy_is_no_grant(site: Site) -> None:
    labels = {"pai-install/storage": "disk", "pai-install/generation": "2", "pai-install/probe": "storage-copy"}
    assert storage_shown(site, "disk", seen(pvc(name="pai-to-disk", labels=labels))).grants == ()


def test_no_secret_is_shown_and_both_forms_hold_their_schema(site: Site, snapshot: SnapshotAssertion) -> None:
    for name in ("data", "homes", "files"):
        shown = storage_shown(site, name, None, "no control plane answers")
        jsonschema.validate(shown.as_json(), schema_of(StorageReport))
        for text in (json.dumps(shown.as_json()), storage_text(shown)):
            assert "pl4nted" not in text
            assert "a2V5" not in text
    assert storage_shown(site, "homes", None).secrets == ("password",)
    assert "password: not shown" in storage_text(storage_shown(site, "homes", None))
    assert storage_text(storage_shown(site, "files", seen())) == snapshot


def test_places_are_what_people_mount(site: Site) -> None:
    report = storages_report(site)
    jsonschema.validate(report.as_json(), schema_of(StoragesReport))
    assert [row.place for row in report.storages] == [
        "nas:/data",
        "//nas/h",
        "acc/f",
        "acc/c",
        "/scratch",
        "w1:/disk",
    ]
    assert "read only" in storages_text(report)


@pytest.mark.parametrize(("name", "report"), [("storages", StoragesReport), ("storage", StorageReport)])
def test_published_schemas_are_the_code_s(name: str, report: type[Report]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(report))
    path = REFERENCE / f"{name}.schema.json"
    assert json.loads(path.read_text()) == schema_of(report), f"pai-install schema {name} > {path}"
