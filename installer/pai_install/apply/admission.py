"""Which machines may be touched for the first time: what preflight says before an installation. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pai_install.findings import Finding, Verdict
from pai_install.preflight.judge import CONTACT_CHECKS
from pai_install.preflight.report import PreflightReport
from pai_install.report.model import PREFLIGHT, HostResult, HostStatus, PhaseResult

TITLE = "Look for what is in the way"


@dataclass(frozen=True, slots=True)
class Admission:
    """phase: every machine that was looked at, and those refused. findings: each FAIL that refuses one."""

    phase: PhaseResult
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> dict[str, str]:
        """Machine -> why it is left as it is."""
        return {host: result.why for host, result in self.phase.hosts.items() if result.status is HostStatus.REFUSED}


def admission(report: PreflightReport, *, looked_at: Collection[str], planned: Collection[str], lead: str) -> Admission:
    """Refuses the machines with a FAIL; and, where the lead is one of them, all that have work.

    A machine that preflight only could not talk to is not refused: the run itself names it. lead: the control
    plane that the others join through; without it nothing of a new cluster can be made.
    """
    failed = [finding for finding in report.findings if _in_the_way(finding)]
    why = {host: _reason(host, failed) for host in dict.fromkeys(finding.subject for finding in failed)}
    if lead in why:
        for host in planned:
            why.setdefault(host, f"{lead}, which the others need, was refused")
    hosts = {host: _result(why.get(host, "")) for host in dict.fromkeys((*looked_at, *why))}
    return Admission(PhaseResult(PREFLIGHT, TITLE, round(report.duration_s, 3), hosts), tuple(failed))


def _in_the_way(finding: Finding) -> bool:
    return finding.verdict is Verdict.FAIL and finding.id not in CONTACT_CHECKS


def _reason(host: str, failed: Collection[Finding]) -> str:
    return "; ".join(f"{finding.message} [{finding.id}]" for finding in failed if finding.subject == host)


def _result(why: str) -> HostResult:
    return HostResult(HostStatus.REFUSED, why=why) if why else HostResult(HostStatus.OK)
