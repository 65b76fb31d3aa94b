"""Sends the collector to the machines and brings their evidence back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pai_install.engine.base import Engine, Event, EventKind, RunRequest
from pai_install.errors import PaiError
from pai_install.health.collect import collector
from pai_install.health.evidence.document import parse_evidence
from pai_install.health.evidence.file import unpack
from pai_install.plan.inventory import connection, groups
from pai_install.plan.model import Inventory
from pai_install.site.model import Site
from pai_install.system.plain import one_line

PLAYBOOK = "health.yml"


@dataclass(frozen=True, slots=True)
class Collection:
    """documents: machine -> evidence. missed: machine -> why there is none."""

    documents: Mapping[str, dict[str, Any]]
    missed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CollectorOptions:
    """Options of the collector on the machines."""

    redact: bool = False
    deep_image: str = ""

    @property
    def words(self) -> list[str]:
        """As arguments."""
        deep = ["--deep-image", self.deep_image] if self.deep_image else []
        return ["--packed", *(["--redact"] if self.redact else []), *deep]


def health_inventory(site: Site) -> Inventory:
    """Groups and connections only: the collector needs no role's variables."""
    hosts = {machine.hostname: connection(machine) for machine in site.present_machines}
    return Inventory(groups=groups(site), shared_vars={}, host_vars=hosts)


def collect(
    engine: Engine, inventory: Inventory, hosts: Iterable[str], options: CollectorOptions | None = None
) -> Collection:
    """Runs the collector on `hosts` in parallel. `missed` lists machines without a document.

    Raises PaiError if the engine cannot run the playbook.
    """
    wanted = tuple(hosts)
    request = RunRequest(
        PLAYBOOK,
        inventory,
        limit=wanted,
        extra_vars={
            "pai_health_collector": str(Path(collector.__file__).resolve()),
            "pai_health_options": (options or CollectorOptions()).words,
        },
    )
    documents: dict[str, dict[str, Any]] = {}
    missed: dict[str, str] = {}
    for event in engine.run(request):
        _take(event, documents, missed)
    gone = {host: "no answer from the machine" for host in wanted if host not in documents and host not in missed}
    return Collection(documents, {**missed, **gone})


def _take(event: Event, documents: dict[str, dict[str, Any]], missed: dict[str, str]) -> None:
    if event.kind in (EventKind.FAILED, EventKind.UNREACHABLE):
        text = event.result.get("msg") or event.result.get("stderr") or event.kind.value
        missed[event.host] = one_line(str(text))[:400]
    elif event.host and event.result.get("stdout"):
        try:
            document = unpack(str(event.result["stdout"]))
            parse_evidence(event.host, document)  # what cannot be read is this machine's trouble alone
            documents[event.host] = {**document, "commands": document.get("commands") or {}}
        except PaiError as error:
            missed[event.host] = f"{error.message}: {one_line(error.details)[:200]}"
