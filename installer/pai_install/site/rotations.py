"""The states of storage rotations: a file in the site's state folder.

A storage without rotations is not in it. The site's files define the newest generation. This file keeps the definition
of an older one, including secrets, until it is retired.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr

from pai_install.site.services.storages import StorageEntry
from pai_install.system.files import private_folder, write_secret
from pai_install.system.state_file import MISSING, reading

FILE = "storages.json"
Value = str | tuple[str, ...] | Mapping[str, str]


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class OldGeneration(_Kept):
    """A generation with objects until no pod mounts them.

    claim: its PVC's name. definition: keys as in the site's files, including secrets. groups: with a grant. claimed: it
    has a PVC. volumes: namespace -> PV, if created manually.
    copying: the next copy of its data to the next generation: the first, the last (of later changes), done, or ""
    without copies.
    filled: the next generation's place was not empty before the first copy. closed: new pods with its claim are denied
    during the last copy.
    """

    generation: int = Field(ge=1)
    claim: str
    definition: Mapping[str, Any] = Field(repr=False)
    groups: tuple[str, ...]
    claimed: bool = True
    volumes: Mapping[str, str] = Field(default_factory=dict)
    copying: Literal["", "first", "last", "done"] = ""
    filled: bool = False
    closed: bool = False

    @property
    def due(self) -> bool:
        """Whether a copy of its data is still to come."""
        return self.copying in ("first", "last")

    @property
    def entry(self) -> StorageEntry:
        """The definition, as a site has it."""
        return StorageEntry.model_validate(dict(self.definition))


class StorageRotationState(_Kept):
    """The rotation state of one storage.

    generation, claim: of the newest, which new jobs use. last: the highest number ever used, because none is reused.
    volumes: as in OldGeneration, of the newest. changes: pending changes of the definition in the site's file before
    the newest exists, then None. before, after: the file's text without and with the changes.
    proven: every worker has mounted the newest. undoing: the newest is being rolled back.
    same_name: it takes over the claim of the previous one. closed: new pods with that claim are denied.
    claimed: it has its PVC.
    """

    generation: int = Field(ge=1)
    claim: str
    last: int = Field(ge=1)
    volumes: Mapping[str, str] = Field(default_factory=dict)
    changes: Mapping[str, Value] | None = Field(default=None, repr=False)
    before: str = Field(default="", repr=False)
    after: str = Field(default="", repr=False)
    proven: bool = True
    undoing: bool = False
    same_name: bool = False
    closed: bool = False
    claimed: bool = True
    older: tuple[OldGeneration, ...] = ()

    @property
    def hidden(self) -> bool:
        """Whether the newest has no objects: not yet, or no longer."""
        return self.changes is not None or self.undoing

    @property
    def used(self) -> bool:
        """Whether new jobs use the newest, not the one before."""
        return self.claimed and not self.hidden

    @property
    def unfinished(self) -> bool:
        """Whether anything of it is left to do."""
        return bool(self.older)


class _File(RootModel[dict[str, StorageRotationState]]):
    model_config = ConfigDict(hide_input_in_errors=True)


def definition_of(entry: StorageEntry) -> dict[str, Any]:
    """The keys of a definition with plain values. Raises PaiError for a secret that is unavailable."""
    fields = {info.alias or name: getattr(entry, name) for name, info in StorageEntry.model_fields.items()}
    plain = {key: it.get_secret_value() if isinstance(it, SecretStr) else it for key, it in fields.items()}
    found = {key: list(it) if isinstance(it, tuple) else it for key, it in plain.items()}
    return {key: it for key, it in found.items() if it not in (None, [])}


def rotations_file(site_dir: Path) -> Path:
    """Where it is."""
    return site_dir.resolve() / ".pai" / FILE


def read_rotations(site_dir: Path) -> dict[str, StorageRotationState]:
    """Storage -> where it stands. Raises PaiError for a damaged file."""
    path = rotations_file(site_dir)
    if path.parent.is_dir() and not os.access(path.parent, os.R_OK | os.X_OK):
        return {}  # whoever may not read the state folder is refused where one is needed
    try:
        with reading(path, "restore it from a backup", code="rotations-file-invalid"):
            return parse_rotations(path.read_bytes())
    except MISSING:
        return {}


def parse_rotations(content: str | bytes) -> dict[str, StorageRotationState]:
    """The content of the file. Raises ValidationError."""
    return _File.model_validate_json(content).root


def save_rotations(site_dir: Path, rotations: Mapping[str, StorageRotationState]) -> None:
    """Replaces the file in one step, readable by its owner only (0600)."""
    path = rotations_file(site_dir)
    private_folder(path.parent)
    write_secret(path, _File(dict(rotations)).model_dump_json(indent=2) + "\n")
