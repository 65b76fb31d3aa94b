"""Collects evidence from all machines in parallel. Read-only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pai_install.engine.base import Engine, Event, EventKind, RunRequest
from pai_install.plan.inventory import connection, groups
from pai_install.plan.model import Inventory
from pai_install.preflight.evidence import PreflightEvidence, parse_evidence
from pai_install.preflight.needs import questions
from pai_install.redact import Redactor
from pai_install.site import Site

PLAYBOOK = "preflight.yml"


@dataclass(frozen=True, slots=True)
class Gathered:
    """evidence: machine -> observations. unreachable: machine -> error message. redactor: of the credentials."""

    evidence: Mapping[str, PreflightEvidence]
    unreachable: Mapping[str, str]
    redactor: Redactor


@dataclass
class _Receiver:
    """Collects the evidence in the events."""

    now: Callable[[], float]
    evidence: dict[str, PreflightEvidence] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        if not event.host:
            return
        if event.kind in (EventKind.FAILED, EventKind.UNREACHABLE, EventKind.IGNORED):
            words = (event.result.get(key) for key in ("msg", "module_stderr", "module_stdout"))
            # Of a long output the end counts: a traceback names its cause last.
            text = "\n".join(str(word).strip() for word in words if word)[-2000:] or event.kind.value
            earlier = self.failures.get(event.host)
            self.failures[event.host] = earlier if earlier and earlier in text else text
        elif isinstance(event.result.get("evidence"), Mapping):
            self.evidence[event.host] = self._timed(parse_evidence(event.result["evidence"]), event.duration_s)

    def _timed(self, evidence: PreflightEvidence, duration_s: float) -> PreflightEvidence:
        if not evidence.has("clock"):
            return evidence
        answered = self.now()
        clock = evidence.clock.model_copy(update={"answered": answered, "requested": answered - duration_s})
        return evidence.model_copy(update={"clock": clock})


def gather(engine: Engine, site: Site, hosts: Iterable[str], *, now: Callable[[], float] = time.time) -> Gathered:
    """Runs preflight.yml on the hosts. `unreachable` lists machines without evidence.

    A machine that only refuses sudo provides the evidence visible to its login user, with `sudo_problem` set. Raises
    PaiError if the engine cannot run the playbook.
    """
    wanted = tuple(hosts)
    receiver = _Receiver(now)
    inventory = preflight_inventory(site)
    for event in engine.run(RunRequest(PLAYBOOK, inventory, limit=wanted)):
        receiver.take(event)
    failed = {
        host: receiver.failures.get(host, "no answer from the machine")
        for host in wanted
        if host not in receiver.evidence
    }
    seen = {
        host: evidence.model_copy(update={"sudo_problem": receiver.failures.get(host, "")})
        for host, evidence in receiver.evidence.items()
    }
    return Gathered(seen, failed, inventory.redactor)


def preflight_inventory(site: Site) -> Inventory:
    """Connections and probe parameters. The playbook itself decides whether to become root: it tries both."""
    requested = questions(site)
    hosts = {
        machine.hostname: {
            # The playbook itself decides about sudo. If sudo is refused, it reads again as the login user.
            **{name: value for name, value in connection(machine).items() if name != "ansible_become"},
            **requested[machine.hostname],
        }
        for machine in site.present_machines
    }
    return Inventory(groups=groups(site), shared_vars={}, host_vars=hosts)
