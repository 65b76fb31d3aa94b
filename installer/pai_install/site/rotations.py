"""How far the rotations of storages have come: a file of the site's state folder, beside what its own files say.

A storage that was never rotated is not in it. The newest generation is what the site's files define; the definition of
an older one, secrets included, is kept here until it is retired.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, ValidationError

from pai_install.errors import PaiError
from pai_install.site.services.storages import StorageEntry
from pai_install.system.files import private_folder, write_secret

FILE = "storages.json"
Value = str | tuple[str, ...] | Mapping[str, str]


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class OldGeneration(_Kept):
    """A generation whose objects stand until nothing mounts them.

    claim: its PVC's name. definition: keys as in the site's files, values of secrets included. groups: those that are
    granted it. claimed: whether it has a PVC. volumes: namespace -> PV, where that was made by hand.
    copying: which copy of its data to the next generation is to come: the first, or the last, of what changed since;
    done after that, "" where none was asked for.
    filled: whether the next generation's place had something in it before the first. closed: whether new pods with its
    claim are refused, as the last copy is made.
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
    """Where one storage stands.

    generation, claim: of the newest, which new jobs use. last: the highest number ever given; none is used twice.
    volumes: as in OldGeneration, of the newest. changes: what the definition in the site's file has yet to become,
    before the newest exists; None once it has. before, after: the file's text at the beginning, and with the changes.
    proven: whether the newest was mounted on every worker. undoing: the newest is taken back.
    same_name: whether it takes over the claim of the one before. closed: whether new pods with that claim are refused.
    claimed: whether it has its PVC.
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
    """Storage -> where it stands. Raises PaiError for a file that is none of ours."""
    path = rotations_file(site_dir)
    try:
        return _File.model_validate_json(path.read_bytes()).root
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}  # whoever may not read the state folder, or has none, is refused where one is needed
    except (OSError, ValidationError) as error:
        reasons = str(error)
        if isinstance(error, ValidationError):
            found = error.errors(include_url=False, include_input=False)
            reasons = "\n".join(str(detail["msg"]) for detail in found)
        raise PaiError(
            f"{path} cannot be used", code="rotations-file-invalid", details=reasons, remedy="restore it from a backup"
        ) from None


def save_rotations(site_dir: Path, rotations: Mapping[str, StorageRotationState]) -> None:
    """Replaces the file in one step, readable by its owner only (0600)."""
    path = rotations_file(site_dir)
    private_folder(path.parent)
    write_secret(path, _File(dict(rotations)).model_dump_json(indent=2) + "\n")
