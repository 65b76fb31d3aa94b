"""The progress of rotations, machine by machine: one file for all rotations of a site.

A rotation gives machines something new (a password, a key, a configuration) in the order that its operation plans. The
generation is a number that counts up; a machine is at the one whose content it was last seen to have.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pai_install.errors import ExitCode, PaiError
from pai_install.system.files import write_atomic

SCHEMA_VERSION = 1


class Rotation(BaseModel):
    """One thing that is rotated. wanted: its newest generation, from 1 on. reached: machine -> the one it has."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    wanted: int = Field(0, ge=0)
    reached: Mapping[str, int] = Field(default_factory=dict)

    def begun(self) -> Rotation:
        """With one generation more, which no machine has yet."""
        return self.model_copy(update={"wanted": self.wanted + 1})

    def at(self, machine: str, generation: int) -> Rotation:
        """With that machine at a generation. Raises ValueError for one that was never begun."""
        if not 0 < generation <= self.wanted:
            raise ValueError(f"generation {generation} of {self.wanted}")
        return self.model_copy(update={"reached": {**self.reached, machine: generation}})

    def behind(self, machines: Collection[str]) -> tuple[str, ...]:
        """Those of the machines that do not have the newest generation; one that is not known has none."""
        return tuple(name for name in machines if self.reached.get(name, 0) < self.wanted)

    def oldest(self, machines: Collection[str]) -> int:
        """The oldest generation that one of the machines still has: what is older may be taken away."""
        return min((self.reached.get(name, 0) for name in machines), default=self.wanted)


class Generations(BaseModel):
    """Every rotation of a site, by its name, e.g. "registry-password"."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: int = SCHEMA_VERSION
    rotations: Mapping[str, Rotation] = Field(default_factory=dict)

    def of(self, name: str) -> Rotation:
        """The rotation of that name; one that was never begun is at 0 everywhere."""
        return self.rotations.get(name, Rotation())

    def having(self, name: str, rotation: Rotation) -> Generations:
        """With that rotation in the place of the one of its name."""
        return self.model_copy(update={"rotations": {**self.rotations, name: rotation}})


def read_generations(path: Path) -> Generations:
    """What the file holds; nothing where there is none.

    Raises PaiError for a broken file: taking it for none would hand out a generation number twice.
    """
    try:
        return Generations.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Generations()
    except (ValidationError, ValueError) as error:
        raise PaiError(
            f"{path} is broken",
            code="generations-invalid",
            details=str(error),
            remedy="restore the file from a backup, or remove it: rotations then start over",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        ) from error


def write_generations(path: Path, generations: Generations) -> None:
    """Writes the file, whole or not at all, for the owner only. The caller holds the site's lock, as every run does."""
    write_atomic(path, json.dumps(generations.model_dump(mode="json"), indent=2) + "\n", mode=0o600)
