"""Adopts PVs and PVCs that an admin created under the name of a storage, or explains why not. Pure.

Admins of OpenPAI created them so. A PV with the same source becomes generation 1 of the storage, under its own names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.kube.objects import JsonObject, child, text
from pai_install.system.plain import one_line

CHECK = "storage-adoption"
_LONGEST = 253
# sources of a volume that Kubernetes itself no longer mounts -> the type of a storage that does the same
_FORMER = {"azureFile": "azureFile", "azure/blobfuse": "azureBlob", "microsoft.com/smb": "smb"}
# what says where a volume is, by its source; the first is the source's own key
_PLACES = {"nfs": ("server", "path"), "hostPath": ("path",), "local": ("path",), "csi": ("driver",)}


@dataclass(frozen=True, slots=True)
class AwaitedGrant:
    """A PVC of a storage, the PV that it is to have, and that PV's spec."""

    storage: str
    namespace: str
    claim: str
    volume: str
    spec: JsonObject


@dataclass(frozen=True, slots=True)
class Adoption:
    """volumes: storage -> namespace -> PV that is taken over. findings: why others are not."""

    volumes: Mapping[str, Mapping[str, str]]
    findings: tuple[Finding, ...]


def adoption(awaited: Iterable[AwaitedGrant], volumes: Sequence[JsonObject], claims: Sequence[JsonObject]) -> Adoption:
    """Returns the existing objects for the awaited grants."""
    pvs = {text(child(one, "metadata").get("name")): one for one in volumes}
    found: dict[str, dict[str, str]] = {}
    findings: list[Finding] = []
    for grant, volume in _by_hand(awaited, claims):
        spec = child(pvs.get(volume, {}), "spec")
        if _same_place(grant.spec, spec):
            found.setdefault(grant.storage, {})[grant.namespace] = volume
        else:
            findings.append(_other(grant, volume, spec))
    return Adoption(found, tuple(findings))


def _by_hand(awaited: Iterable[AwaitedGrant], claims: Sequence[JsonObject]) -> Iterator[tuple[AwaitedGrant, str]]:
    """Yields grants with a PVC that is bound to a foreign PV, and the name of that PV."""
    known = {_name(claim): claim for claim in claims if "deletionTimestamp" not in child(claim, "metadata")}
    for grant in awaited:
        volume = text(child(known.get((grant.namespace, grant.claim), {}), "spec").get("volumeName"))
        if volume not in ("", grant.volume):
            yield grant, volume


def _name(entry: JsonObject) -> tuple[str, str]:
    metadata = child(entry, "metadata")
    return text(metadata.get("namespace")), text(metadata.get("name"))


def _same_place(wanted: JsonObject, there: JsonObject) -> bool:
    """Returns whether two PVs mount the same source. Additional driver options are ignored."""
    source = next((name for name in _PLACES if name in wanted), "")
    desired, current = child(wanted, source), child(there, source)
    keys = _PLACES.get(source, ())
    attributes, current_attributes = child(desired, "volumeAttributes"), child(current, "volumeAttributes")
    return (
        bool(current)
        and all(_plain(desired.get(key)) == _plain(current.get(key)) for key in keys)
        and all(
            _plain(current_attributes.get(key)) == _plain(value)
            for key, value in attributes.items()
            if key != "protocol"
        )
    )


def _plain(value: object) -> str:
    """A path with and without a last slash is one."""
    return text(value).rstrip("/") or text(value)


def _other(grant: AwaitedGrant, volume: str, spec: JsonObject) -> Finding:
    what = f"PVC {grant.namespace}/{grant.claim} was created manually, and its PV {one_line(volume)[:_LONGEST]}"
    driver = text(child(spec, "flexVolume").get("driver")) or ("azureFile" if "azureFile" in spec else "")
    driver = one_line(driver)[:_LONGEST]
    if driver or "flexVolume" in spec:
        message = f"{what} has a volume type without support in Kubernetes ({driver or 'flexVolume'})"
        return Finding(CHECK, Verdict.FAIL, "cluster", message, driver, "a storage", _advice(grant, driver))
    message = f"{what} has another path than storage {grant.storage}" if spec else f"{what} does not exist"
    remedy = "rename the storage, or set its path to that of the PV, or delete the PVC where no pod uses it"
    return Finding(CHECK, Verdict.FAIL, "cluster", message, one_line(volume)[:_LONGEST], grant.volume, remedy)


def _advice(grant: AwaitedGrant, driver: str) -> str:
    kind = _FORMER.get(driver, "one of docs/storage.md")
    return (
        f"define a storage with another name and type {kind}, grant it, and use it in jobs. Set "
        f"persistentVolumeReclaimPolicy to Retain, and delete the PVC and PV of {grant.claim} once no pod uses them"
    )
