"""The registries of a site as machines use them: as a result and as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, WithJsonSchema

from pai_install.json_schema import Report
from pai_install.plan.model import Plan
from pai_install.registry.compile import registries_of
from pai_install.registry.identity import read_identity
from pai_install.registry.rotation import STAGES, unfinished
from pai_install.site.model import Site

_CLIENTS = "registries"
_Subject = Annotated[str, WithJsonSchema({"enum": list(STAGES)})]


class RegistriesReport(Report, title="pai-install registry show"):
    """The registries of the machines."""

    cache: str = Field(description="Address of the cache. Empty: no cache.")
    upstreams: Mapping[str, str] = Field(description="Registry -> the endpoint that machines ask first.")
    air_gapped: bool = Field(description="Whether machines never ask the registry itself.")
    machines: Mapping[str, tuple[str, ...]] = Field(
        description="Machine -> its differences from the site. Empty: no difference."
    )
    rotating: tuple[_Subject, ...] = Field(description="Unfinished rotations.")


def registries_report(site: Site, plan: Plan, identity: Path) -> RegistriesReport:
    """From the plan of an installation: a machine without work in the phase is as the site wants it."""
    known = read_identity(identity)
    found = registries_of(site, known)
    cached = {one.name for one in found.cache.upstreams} if found.cache else set()
    rows = {
        one.name: one.mirror or (found.cache.url if found.cache and one.name in cached else one.url)
        for one in found.upstreams
    }
    reasons = {one.host: one.reasons for step in plan.steps if step.name == _CLIENTS for one in step.hosts}
    lost = {name: (f"not reached: {why}",) for name, why in plan.unreachable.items()}
    machines = {one.hostname: lost.get(one.hostname, reasons.get(one.hostname, ())) for one in site.nodes}
    return RegistriesReport(
        cache=found.cache.address if found.cache else "",
        upstreams=rows,
        air_gapped=found.air_gapped,
        machines=machines,
        rotating=unfinished(known) if known else (),
    )


def registries_text(report: RegistriesReport) -> str:
    """A line for each upstream and each machine."""
    lines = [f"cache: {report.cache or 'none'}"]
    lines += [
        f"{name}: machines ask {where}{_fallback(report, where, name)}" for name, where in report.upstreams.items()
    ]
    lines += [f"rotation of the {subject} is unfinished" for subject in report.rotating]
    lines += [f"{name}: {'; '.join(reasons) or 'as the site says'}" for name, reasons in report.machines.items()]
    return "\n".join(lines) + "\n"


def _fallback(report: RegistriesReport, where: str, name: str) -> str:
    if name in where:
        return ""
    return ", and never it itself (air-gapped)" if report.air_gapped else ", then it itself"
