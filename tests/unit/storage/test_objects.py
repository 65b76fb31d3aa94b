"""Grants -> Kubernetes objects, for each type of storage."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pai_install.site import load_site
from pai_install.storage.compile import grants_of
from pai_install.storage.model import Grant
from pai_install.storage.objects import secrets, volumes
from tests.unit.site.sites import write_site

STORAGES = """\
storages:
  - {name: data, type: nfs, server: nas, path: /data, capacity: 10Ti, mount-options: [nfsvers=4.1], read-only: true}
  - {name: homes, type: smb, server: nas, share-name: homes, username: u, password: pl4nted, share: false}
  - {name: files, type: azureFile, account-name: acc, account-key: a2V5, share-name: f}
  - {name: blobs, type: azureBlob, account-name: acc, account-key: a2V5, container-name: c, server: blob.example.com}
  - {name: scratch, type: hostPath, path: /scratch, access-mode: ReadWriteOnce}
  - {name: disk, type: local, path: /disk, machine: w1}
authentication:
  group-manager:
    default-group: {groupname: default, extension: {acls: {storageConfigs: [data]}}}
    grouplist:
      - {groupname: Team_A, extension: {acls: {storageConfigs: [data, homes, files, blobs, scratch, disk]}}}
      - {groupname: Team_B}
"""


@pytest.fixture
def grants(tmp_path: Path) -> tuple[Grant, ...]:
    return grants_of(load_site(write_site(tmp_path, services=STORAGES)).site)


def named(grants: tuple[Grant, ...], kind: str, name: str) -> dict[str, Any]:
    (found,) = [it for it in volumes(grants) if (it["kind"], it["metadata"]["name"]) == (kind, name)]
    return found


def test_a_grant_is_a_pair_that_names_each_other(grants: tuple[Grant, ...]) -> None:
    pv, pvc = named(grants, "PersistentVolume", "default-data-g1"), None
    for entry in volumes(grants):
        if (entry["kind"], entry["metadata"].get("namespace")) == ("PersistentVolumeClaim", "default"):
            pvc = entry
    assert pvc is not None
    assert pvc["metadata"]["name"] == "data"
    assert pvc["spec"]["volumeName"] == "default-data-g1"
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    assert pv["spec"]["claimRef"] == claim
    assert pv["spec"]["storageClassName"] == pvc["spec"]["storageClassName"] == ""
    assert pv["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert pv["spec"]["capacity"]["storage"] == pvc["spec"]["resources"]["requests"]["storage"] == "10Ti"
    assert pv["spec"]["accessModes"] == pvc["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert pv["spec"]["nfs"] == {"server": "nas", "path": "/data", "readOnly": True}
    assert pv["spec"]["mountOptions"] == ["nfsvers=4.1"]


def test_no_two_volumes_have_one_name_or_handle(grants: tuple[Grant, ...]) -> None:
    found = [it for it in volumes(grants) if it["kind"] == "PersistentVolume"]
    handles = [it["spec"]["csi"]["volumeHandle"] for it in found if "csi" in it["spec"]]
    assert len(found) == 7
    assert all(one["metadata"]["name"] != other["metadata"]["name"] for one, other in combinations(found, 2))
    assert len(set(handles)) == len(handles) == 3


def test_a_folder_per_user_is_what_openpai_labels(grants: tuple[Grant, ...]) -> None:
    shared = {it["metadata"]["name"]: it["metadata"]["labels"]["share"] for it in volumes(grants)}
    assert (shared["homes"], shared["data"]) == ("false", "true")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("team-a-homes-g1", {"driver": "smb.csi.k8s.io", "volumeAttributes": {"source": "//nas/homes"}}),
        (
            "team-a-files-g1",
            {"driver": "file.csi.azure.com", "volumeAttributes": {"shareName": "f", "storageAccount": "acc"}},
        ),
        (
            "team-a-blobs-g1",
            {
                "driver": "blob.csi.azure.com",
                "volumeAttributes": {
                    "containerName": "c",
                    "storageAccount": "acc",
                    "protocol": "fuse2",
                    "server": "blob.example.com",
                },
            },
        ),
    ],
)
def test_drivers_are_told_where_and_by_which_secret(
    grants: tuple[Grant, ...], name: str, source: dict[str, Any]
) -> None:
    csi = named(grants, "PersistentVolume", name)["spec"]["csi"]
    assert {key: csi[key] for key in source} == source
    secret = csi["nodeStageSecretRef"]
    assert secret in [{key: it["metadata"][key] for key in ("name", "namespace")} for it in secrets(grants)]


def test_secrets_hold_what_drivers_read(grants: tuple[Grant, ...]) -> None:
    found = {it["metadata"]["name"]: it for it in secrets(grants)}
    assert set(found) == {"storage-homes-g1", "storage-files-g1", "storage-blobs-g1"}
    homes, files = found["storage-homes-g1"], found["storage-files-g1"]
    assert (homes["plain_data"], homes["secret_data"]) == ({"username": "u"}, {"password": "pl4nted"})
    assert files["plain_data"] == {"azurestorageaccountname": "acc"}
    assert files["secret_data"] == {"azurestorageaccountkey": "a2V5"}


def test_folders_of_machines(grants: tuple[Grant, ...]) -> None:
    scratch = named(grants, "PersistentVolume", "team-a-scratch-g1")["spec"]
    assert scratch["hostPath"] == {"path": "/scratch", "type": "Directory"}
    disk = named(grants, "PersistentVolume", "team-a-disk-g1")["spec"]
    assert disk["local"] == {"path": "/disk"}
    (term,) = disk["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["w1"]}]


def test_a_group_without_a_grant_gets_nothing(grants: tuple[Grant, ...]) -> None:
    assert {grant.namespace for grant in grants} == {"default", "team-a"}


def test_claims_made_by_hand_are_no_grants(tmp_path: Path) -> None:
    services = (
        "authentication: {group-manager: {default-group: {groupname: d, extension: {acls: {storageConfigs: [x]}}}}}\n"
    )
    assert grants_of(load_site(write_site(tmp_path, services=services)).site) == ()
