"""PVs and PVCs as OpenPAI's manual has them made, against what a site grants."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.health.cluster.adoption import AwaitedGrant, adoption

NFS = {"nfs": {"server": "nas", "path": "/data", "readOnly": False}}
WANTED = AwaitedGrant("data", "default", "data", "default-data-g1", NFS)


def pair(source: dict[str, Any], volume: str = "data-pv") -> tuple[list[Any], list[Any]]:
    """A PV with that source, and the PVC `data` in `default` that names it."""
    pv = {"metadata": {"name": volume}, "spec": {**source, "capacity": {"storage": "10Gi"}}}
    pvc = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"volumeName": volume}}
    return [pv], [pvc]


def of_spec(spec: dict[str, Any]) -> AwaitedGrant:
    return AwaitedGrant("data", "default", "data", "default-data-g1", spec)


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        (NFS, {"nfs": {"server": "nas", "path": "/data"}}),
        (NFS, {"nfs": {"server": "nas", "path": "/data/"}}),
        ({"hostPath": {"path": "/x", "type": "Directory"}}, {"hostPath": {"path": "/x", "type": ""}}),
        ({"local": {"path": "/x"}}, {"local": {"path": "/x"}}),
        (
            {"csi": {"driver": "smb.csi.k8s.io", "volumeHandle": "a", "volumeAttributes": {"source": "//nas/x"}}},
            {"csi": {"driver": "smb.csi.k8s.io", "volumeHandle": "b", "volumeAttributes": {"source": "//nas/x"}}},
        ),
    ],
)
def test_the_same_place_is_taken_over_under_its_own_names(wanted: dict[str, Any], there: dict[str, Any]) -> None:
    found = adoption([of_spec(wanted)], *pair(there))
    assert (found.volumes, found.findings) == ({"data": {"default": "data-pv"}}, ())


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"nfs": {"server": "other", "path": "/data"}}, "has another path than storage data"),
        ({"hostPath": {"path": "/data"}}, "has another path than storage data"),
        ({"azureFile": {"shareName": "x", "secretName": "y"}}, "without support in Kubernetes (azureFile)"),
        ({"flexVolume": {"driver": "azure/blobfuse"}}, "without support in Kubernetes (azure/blobfuse)"),
        ({"flexVolume": {"driver": 7}}, "without support in Kubernetes (flexVolume)"),
    ],
)
def test_another_place_is_told_with_what_to_do(there: dict[str, Any], said: str) -> None:
    found = adoption([WANTED], *pair(there))
    assert found.volumes == {}
    (finding,) = found.findings
    assert (finding.id, finding.verdict) == ("storage-adoption", "FAIL")
    assert said in finding.message
    assert "name" in finding.remedy


@pytest.mark.parametrize(
    ("driver", "kind"), [("azure/blobfuse", "azureBlob"), ("microsoft.com/smb", "smb"), ("x/y", "one of docs/storage")]
)
def test_the_advice_names_the_type_that_does_the_same(driver: str, kind: str) -> None:
    (finding,) = adoption([WANTED], *pair({"flexVolume": {"driver": driver}})).findings
    assert f"and type {kind}" in finding.remedy


def test_ours_and_what_is_not_there_are_no_case() -> None:
    for volumes, claims in (([], []), pair(NFS, "default-data-g1"), ([], [{"metadata": {"name": "data"}}])):
        found = adoption([WANTED], volumes, claims)
        assert (found.volumes, found.findings) == ({}, ())
    volumes, claims = pair(NFS)
    claims[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = adoption([WANTED], volumes, claims)
    assert (found.volumes, found.findings) == ({}, ())


def test_a_claim_without_its_volume_is_told(snapshot: SnapshotAssertion) -> None:
    _volumes, claims = pair(NFS)
    (finding,) = adoption([WANTED], [], claims).findings
    assert finding.message == snapshot
