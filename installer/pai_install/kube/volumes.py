"""PersistentVolumes and their claims as frozen values. A missing value is "" or None (unknown). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text, words


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume. claim: its claimRef, or None. size: in the API's form.

    phase: Available, Bound, Released, or Failed. why: the API's reason. deleting: under deletion.
    """

    name: str
    phase: str = ""
    why: str = ""
    claim: Ref | None = None
    size: str = ""
    deleting: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, volume: JsonObject) -> Self:
        """Reads a PersistentVolume."""
        metadata, spec, status = child(volume, "metadata"), child(volume, "spec"), child(volume, "status")
        claim = child(spec, "claimRef")
        return cls(
            name=text(metadata.get("name")),
            phase=text(status.get("phase")),
            why=" ".join(filter(None, (text(status.get("reason")), text(status.get("message"))))),
            claim=_ref(text(claim.get("name")), text(claim.get("namespace"))),
            size=text(child(spec, "capacity").get("storage")),
            deleting="deletionTimestamp" in metadata,
            labels=words(metadata.get("labels")),
        )


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim. volume: its volumeName, or "". requested: requested size in the API's form.

    phase: Pending, Bound, or Lost. deleting: under deletion.
    """

    name: str
    namespace: str = ""
    phase: str = ""
    volume: str = ""
    requested: str = ""
    deleting: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, claim: JsonObject) -> Self:
        """Reads a PersistentVolumeClaim."""
        metadata, spec, status = child(claim, "metadata"), child(claim, "spec"), child(claim, "status")
        return cls(
            name=text(metadata.get("name")),
            namespace=text(metadata.get("namespace")),
            phase=text(status.get("phase")),
            volume=text(spec.get("volumeName")),
            requested=text(child(spec, "resources", "requests").get("storage")),
            deleting="deletionTimestamp" in metadata,
            labels=words(metadata.get("labels")),
        )


def _ref(name: str, namespace: str) -> Ref | None:
    return Ref("persistentvolumeclaim", name, namespace) if name else None
