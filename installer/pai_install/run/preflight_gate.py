"""Excludes machines that fail preflight, before their first change. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from pai_install.checks.finding import Finding
from pai_install.checks.runner import force
from pai_install.checks.verdict import Verdict
from pai_install.plan.observed import Observed
from pai_install.preflight.contact import CONTACT_CHECKS
from pai_install.preflight.report import PreflightReport
from pai_install.preflight.rules.identity import COPIED
from pai_install.report.model import PREFLIGHT, HostResult, HostStatus, PhaseResult

TITLE = "Run preflight checks"
_MACHINE_ID = "machine-id"


@dataclass(frozen=True, slots=True)
class PreflightGate:
    """phase: every machine that preflight checked, and those refused. findings: each FAIL that refuses one."""

    phase: PhaseResult
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> dict[str, str]:
        """Machine -> why it is left as it is."""
        return {host: result.why for host, result in self.phase.hosts.items() if result.status is HostStatus.REFUSED}


def preflight_gate(
    report: PreflightReport, *, looked_at: Collection[str], planned: Collection[str], leader: str
) -> PreflightGate:
    """Refuses the machines with a FAIL, and all machines with work if the leader is one of them.

    An unreachable machine is not refused, because the run itself reports it. leader: the control-plane node that the
    others join through, without which no new cluster is possible.
    """
    failed = [finding for finding in report.findings if _in_the_way(finding)]
    why = {host: _reason(host, failed) for host in dict.fromkeys(finding.subject for finding in failed)}
    if leader in why:
        for host in planned:
            why.setdefault(host, f"preflight refused {leader}, which the other machines need")
    hosts = {host: _result(why.get(host, "")) for host in dict.fromkeys((*looked_at, *why))}
    return PreflightGate(PhaseResult(PREFLIGHT, TITLE, round(report.duration_s, 3), hosts), tuple(failed))


def against_all(
    report: PreflightReport, looked_at: Collection[str], observed: Mapping[str, Observed]
) -> PreflightReport:
    """The report with machine ids compared also with the machines that preflight did not look at.

    Those are the observed ones, and the nodes that a control plane knows: a copy of a machine that works already
    would otherwise pass.
    """
    known = {finding.subject for finding in report.findings if finding.id == _MACHINE_ID and finding.remedy}
    found = {finding.subject: finding for finding in _copies(looked_at, observed) if finding.subject not in known}
    kept = [item for item in report.findings if not (item.id == _MACHINE_ID and item.subject in found)]
    return replace(report, findings=(*kept, *force(tuple(found.values()), report.forced)))


def _copies(looked_at: Collection[str], observed: Mapping[str, Observed]) -> Iterator[Finding]:
    owners: dict[str, dict[str, None]] = {}
    for host, identity in _identities(observed):
        if identity:
            owners.setdefault(identity, {})[host] = None
    for host in looked_at:
        identity = observed[host].machine_id
        others = [other for other in owners.get(identity, ()) if other != host]
        if others:
            yield Finding(
                _MACHINE_ID,
                Verdict.FAIL,
                host,
                f"{', '.join(others)} has the same machine id",
                identity,
                "a unique one",
                COPIED,
            )


def _identities(observed: Mapping[str, Observed]) -> Iterator[tuple[str, str]]:
    for host, seen in observed.items():
        yield host, seen.machine_id
        for node in seen.cluster.nodes if seen.cluster else ():
            yield node.name, node.machine_id


def _in_the_way(finding: Finding) -> bool:
    return finding.verdict is Verdict.FAIL and finding.id not in CONTACT_CHECKS


def _reason(host: str, failed: Collection[Finding]) -> str:
    return "; ".join(f"{finding.message} [{finding.id}]" for finding in failed if finding.subject == host)


def _result(why: str) -> HostResult:
    return HostResult(HostStatus.REFUSED, why=why) if why else HostResult(HostStatus.OK)
