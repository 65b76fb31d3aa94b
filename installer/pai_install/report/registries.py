"""The registries of a site as machines use them: as data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pai_install.json_schema import published
from pai_install.plan.model import Plan
from pai_install.registry.compile import registries_of
from pai_install.registry.identity import read_identity
from pai_install.registry.rotation import STAGES, unfinished
from pai_install.site.model import Site

REGISTRIES_SCHEMA_VERSION = 1
_CLIENTS = "registries"


@dataclass(frozen=True, slots=True)
class RegistriesShown:
    """cache: its address, or "". upstreams: registry -> endpoints of machines. rotating: unfinished rotations.

    machines: machine -> difference from that, or "".
    """

    cache: str
    upstreams: Mapping[str, str]
    air_gapped: bool
    machines: Mapping[str, tuple[str, ...]]
    rotating: tuple[str, ...] = ()


def registries_shown(site: Site, plan: Plan, identity: Path) -> RegistriesShown:
    """From the plan of an installation: a machine without work in the phase is as the site wants it."""
    known = read_identity(identity)
    found = registries_of(site, known)
    cached = {one.name for one in found.cache.upstreams} if found.cache else set()
    asked = {
        one.name: one.mirror or (found.cache.url if found.cache and one.name in cached else one.url)
        for one in found.upstreams
    }
    reasons = {one.host: one.reasons for step in plan.steps if step.name == _CLIENTS for one in step.hosts}
    lost = {name: (f"not reached: {why}",) for name, why in plan.unreachable.items()}
    machines = {one.hostname: lost.get(one.hostname, reasons.get(one.hostname, ())) for one in site.nodes}
    address = found.cache.address if found.cache else ""
    return RegistriesShown(address, asked, found.air_gapped, machines, unfinished(known) if known else ())


def registries_data(shown: RegistriesShown) -> dict[str, Any]:
    """The published form."""
    return {"schema_version": REGISTRIES_SCHEMA_VERSION, **asdict(shown)}


def registries_text(shown: RegistriesShown) -> str:
    """A line for each upstream and each machine."""
    lines = [f"cache: {shown.cache or 'none'}"]
    lines += [f"{name}: machines ask {where}{_fallback(shown, where, name)}" for name, where in shown.upstreams.items()]
    lines += [f"rotation of the {subject} is unfinished" for subject in shown.rotating]
    lines += [f"{name}: {'; '.join(reasons) or 'as the site says'}" for name, reasons in shown.machines.items()]
    return "\n".join(lines) + "\n"


def _fallback(shown: RegistriesShown, where: str, name: str) -> str:
    if name in where:
        return ""
    return ", and never it itself (air-gapped)" if shown.air_gapped else ", then it itself"


def schema() -> dict[str, Any]:
    """The JSON Schema of `registries_data`."""
    text: dict[str, Any] = {"type": "string"}
    reasons: dict[str, Any] = {"type": "array", "items": text}
    return published(
        "pai-install registry show",
        REGISTRIES_SCHEMA_VERSION,
        cache={**text, "description": "where machines ask the cache; empty: there is none"},
        upstreams={
            "type": "object",
            "additionalProperties": text,
            "description": "registry -> where machines ask for it first",
        },
        air_gapped={"type": "boolean", "description": "true: machines never ask the registry itself"},
        machines={
            "type": "object",
            "additionalProperties": reasons,
            "description": "machine -> why it differs from that; empty where it does not",
        },
        rotating={"type": "array", "items": {"enum": list(STAGES)}, "description": "rotations that are unfinished"},
    )
