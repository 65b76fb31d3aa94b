"""One storage: its definition, the state of its grants in the cluster, and its users. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, SecretStr

from pai_install.cluster.read import Mounts
from pai_install.json_schema import Count, Report
from pai_install.kube.objects import quantity
from pai_install.kube.volumes import Volume, VolumeClaim
from pai_install.redact import MASK
from pai_install.report.table import table
from pai_install.site.model import Site
from pai_install.site.services.storages import StorageEntry
from pai_install.storage.compile import grants_of
from pai_install.storage.model import Grant
from pai_install.storage.objects import PROBE
from pai_install.storage.place import place
from pai_install.storage.rotation import pending_action
from pai_install.system.words import plural

STORAGE_LABEL = "pai-install/storage"
_GENERATION_LABEL = "pai-install/generation"
# options of mount.cifs hold one where an admin passes over username and password
_SECRET_OPTION = re.compile(r"(?i)^([a-z_-]*(?:pass|secret|token|key)[a-z_-]*=).*")


@dataclass(frozen=True, slots=True)
class GrantShown:
    """A PV and a PVC. group: "" without a grant in the site. current: new jobs use it.

    bound: None if unknown.

    why: obstacle of the binding or difference from the site, or "".
    """

    group: str
    namespace: str
    claim: str
    volume: str
    generation: Count
    current: bool
    bound: bool | None
    why: str


@dataclass(frozen=True, slots=True)
class Consumer:
    """A pod that has not ended, and the claim that it uses. node: "" before it has one."""

    namespace: str
    name: str
    claim: str
    node: str
    phase: str


class StorageReport(Report, title="pai-install storage show"):
    """A storage, the state of its grants, and its users."""

    name: str
    place: str
    definition: Mapping[str, Any] = Field(description="Keys of the section storages, without secrets.")
    secrets: tuple[str, ...] = Field(description="Keys of hidden values.")
    grants: tuple[GrantShown, ...]
    consumers: tuple[Consumer, ...] = Field(description="Pods that have not ended.")
    nodes: Mapping[str, Count] = Field(description="Node -> number of its pods with this storage.")
    next: str = Field(description="Next action of a rotation. Empty: none.")
    not_asked: str = Field(description="Why the state of the cluster is unknown. Empty: it is known.")


def storage_shown(site: Site, name: str, seen: Mounts | None, not_asked: str = "") -> StorageReport:
    """The storage of that name, which the site has. seen: None where the cluster could not be asked."""
    storage = next(one for one in site.services.storages or () if one.name == name)
    grants = tuple(grant for grant in grants_of(site) if grant.storage.name == name)
    known = seen or Mounts()
    shown = (*(_granted(grant, seen) for grant in grants), *_other(grants, name, known))
    consumers = consumers_of([(one.namespace, one.claim) for one in shown], known)
    nodes = Counter(one.node for one in consumers if one.node)
    keys, secrets = _definition(storage)
    return StorageReport(
        name=name,
        place=place(storage),
        definition=keys,
        secrets=secrets,
        grants=shown,
        consumers=consumers,
        nodes=dict(sorted(nodes.items())),
        next=_next(site, name),
        not_asked=not_asked,
    )


def _next(site: Site, name: str) -> str:
    rotation = site.rotations.get(name)
    return pending_action(name, rotation) if rotation is not None else ""


def _definition(storage: StorageEntry) -> tuple[dict[str, object], tuple[str, ...]]:
    given = {
        (info.alias or key): getattr(storage, key)
        for key, info in StorageEntry.model_fields.items()
        if getattr(storage, key) not in (None, (), "")
    }
    secrets = tuple(key for key, value in given.items() if isinstance(value, SecretStr))
    plain = {key: _shown(value) for key, value in given.items() if key not in secrets}
    return plain, secrets


def _shown(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    return [_SECRET_OPTION.sub(rf"\g<1>{MASK}", str(one)) for one in value]


def _granted(grant: Grant, seen: Mounts | None) -> GrantShown:
    if seen is None:
        bound, why = None, "the cluster was not asked"
    else:
        claims = (one for one in seen.claims if (one.namespace, one.name) == (grant.namespace, grant.claim))
        volumes = (one for one in seen.volumes if one.name == grant.volume)
        bound, why = _binding(grant, next(claims, None), next(volumes, None))
    return GrantShown(
        grant.group, grant.namespace, grant.claim, grant.volume, grant.generation, grant.current, bound, why
    )


def _binding(grant: Grant, claim: VolumeClaim | None, volume: Volume | None) -> tuple[bool | None, str]:
    """Whether the pair is bound, and why not."""
    if not grant.claimed:
        return False, "its PVC is given to another generation: a rotation that keeps the name"
    if claim is None:
        return False, "the PVC does not exist: pai-install apply makes it"
    if claim.deleting:
        return claim.phase == "Bound", "the PVC is being deleted, and stays until no pod uses it"
    if claim.volume not in ("", grant.volume):
        return claim.phase == "Bound", f"the PVC names another PV, {claim.volume}"
    if claim.phase == "Lost" or volume is None:
        return False, "the PV does not exist: pai-install apply makes it"
    return _pair(claim, volume)


def _pair(claim: VolumeClaim, volume: Volume) -> tuple[bool | None, str]:
    if claim.phase == volume.phase == "Bound" and not volume.deleting:
        return True, ""
    why = next(filter(None, _reasons(claim, volume)), "")
    unknown = not (claim.phase and volume.phase)
    bound = None if unknown else claim.phase == volume.phase == "Bound"
    return bound, why or ("the API says no phase" if unknown else "Kubernetes has not bound them yet")


def _reasons(claim: VolumeClaim, volume: Volume) -> Iterator[str]:
    if volume.deleting:
        yield "the PV is being deleted"
    if volume.claim is not None and (volume.claim.namespace, volume.claim.name) != (claim.namespace, claim.name):
        yield f"the PV is for another claim, {volume.claim.namespace}/{volume.claim.name}"
    if volume.phase == "Released":
        yield "the PV is Released: its claim was deleted"
    if volume.phase == "Failed":
        yield f"the PV has Failed{f': {volume.why}' if volume.why else ''}"
    requested, size = quantity(claim.requested), quantity(volume.size)
    if requested is not None and size is not None and requested > size:
        yield f"the PVC asks for {claim.requested}, and the PV has {volume.size}"


def _other(grants: tuple[Grant, ...], name: str, seen: Mounts) -> Iterator[GrantShown]:
    """Yields pairs of the storage in the cluster without a grant in the site, except temporary ones of a
    trial or copy.
    """
    claims = {(grant.namespace, grant.claim) for grant in grants}
    for claim in seen.claims:
        if PROBE in claim.labels or claim.labels.get(STORAGE_LABEL) != name:
            continue
        if (claim.namespace, claim.name) not in claims:
            number = claim.labels.get(_GENERATION_LABEL, "")
            generation = int(number) if number.isdecimal() else 0
            why = "no group is granted it by the site: pai-install apply takes the access away"
            bound = claim.phase == "Bound" if claim.phase else None
            names = ("", claim.namespace, claim.name, claim.volume)
            yield GrantShown(*names, generation, current=False, bound=bound, why=why)


def consumers_of(claims: Collection[tuple[str, str]], seen: Mounts, *, finished: bool = False) -> tuple[Consumer, ...]:
    """Returns the running or the finished pods that use one of the claims (namespace, name)."""
    return tuple(
        Consumer(pod.namespace, pod.name, claim, pod.node, pod.phase)
        for pod in seen.pods
        if pod.finished is finished
        for claim in dict.fromkeys(pod.claims)
        if (pod.namespace, claim) in claims
    )


def storage_text(shown: StorageReport) -> str:
    """The definition, then tables of grants and consumers."""
    keys = {key: _word(value) for key, value in shown.definition.items() if key != "name"}
    lines = [f"{shown.name}: {shown.place}"]
    lines += [f"  {key}: {value}" for key, value in keys.items()]
    lines += [f"  {key}: not shown" for key in shown.secrets]
    text = "\n".join(lines) + f"\n\n{_grants_text(shown)}" + (f"{shown.next}\n" if shown.next else "")
    if shown.not_asked:
        return f"{text}\nnot known: who uses it, as the cluster could not be asked: {shown.not_asked}\n"
    return f"{text}\n{_consumers_text(shown)}"


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _grants_text(shown: StorageReport) -> str:
    if not shown.grants:
        return f"granted to no group: pai-install storage grant {shown.name} --group GROUP\n"
    head = ("GROUP", "NAMESPACE", "PVC", "PV", "GENERATION", "FOR", "BOUND")
    words = {True: "yes", False: "no", None: "not known"}
    return table([
        head,
        *(
            (one.group or "none", one.namespace, one.claim, one.volume, str(one.generation),
             "new jobs" if one.current else "jobs that run",
             f"{words[one.bound]}{f': {one.why}' if one.why else ''}")
            for one in shown.grants
        ),
    ])  # fmt: skip


def _consumers_text(shown: StorageReport) -> str:
    if not shown.consumers:
        return "no pod uses it\n"
    nodes = ", ".join(f"{node} {count}" for node, count in shown.nodes.items()) or "none yet"
    count = plural(len(shown.consumers), "pod")
    return f"{consumers_text(shown.consumers)}\n{count}, by node: {nodes}\n"


def consumers_text(consumers: Collection[Consumer]) -> str:
    """A table with a line for each."""
    rows = [(f"{one.namespace}/{one.name}", one.claim, one.node or "none yet", one.phase) for one in consumers]
    return table([("POD", "PVC", "NODE", "PHASE"), *rows])
