"""Reads controls.yml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "controls.yml"
# state -> what it says to a reader
STATES = {
    "met": "met: kubeadm or Kubernetes does it",
    "set": "set: pai-install does it",
    "not met": "not met, for the reason given",
    "yours": "yours to decide: it depends on who uses the cluster for what",
    "not applicable": "not applicable: there is no such thing in these clusters",
}


@dataclass(frozen=True)
class Control:
    """One control. checks: forms that judge.py knows; all must hold."""

    id: str
    about: str
    state: str
    why: str = ""
    checks: tuple[Mapping[str, Any], ...] = ()

    @property
    def on_every_machine(self) -> bool:
        """Whether workers are concerned too."""
        return self.id.startswith("4.")


def controls() -> tuple[Control, ...]:
    """All of them, in the benchmark's order."""
    entries = _document()["controls"]
    return tuple(Control(**{**entry, "id": str(entry["id"]), "checks": tuple(_checks(entry))}) for entry in entries)


def sections() -> dict[str, str]:
    """Beginning of an id -> what its controls are about."""
    found: dict[str, str] = _document()["sections"]
    return {str(name): title for name, title in found.items()}


def section_of(control: Control) -> str:
    """The section a control belongs to. Raises StopIteration where there is none."""
    return next(name for name in sections() if control.id == name or control.id.startswith(f"{name}."))


def _checks(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = entry.get("checks", [])
    return found


@cache
def _document() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return found
