"""One run over all machines: its reports, its exit code, its text form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pai_install.checks.finding import Finding, counts
from pai_install.checks.report import prometheus
from pai_install.checks.report.html import ReportMachine
from pai_install.checks.report.prometheus import Target
from pai_install.checks.report.text import finding_lines
from pai_install.checks.verdict import GRAVITY, OPEN, Action, Verdict
from pai_install.errors import ExitCode
from pai_install.health.judge.evaluate import MachineReport
from pai_install.health.memory.acknowledgement import Acknowledgement, Key, apply, key_of
from pai_install.system.words import plural, shortened

_COLUMNS = {verdict.value: f"{verdict.value:.4}" for verdict in GRAVITY}
UNREACHED = "machine-reachable"


@dataclass(frozen=True, slots=True)
class HealthReport:
    """All machines of one run. missed: machine -> why it returned no evidence, a FAIL of its own.

    described: the site's machines with role and address, where there is a site. acknowledged: (machine, check, device)
    of the findings that a person has judged -> by whom, why and until when.
    """

    machines: tuple[MachineReport, ...]
    missed: Mapping[str, str] = field(default_factory=dict)
    site: str = ""
    described: tuple[ReportMachine, ...] = ()
    acknowledged: Mapping[Key, Acknowledgement] = field(default_factory=dict)

    @property
    def findings(self) -> Iterator[Finding]:
        """Every finding, machines that returned no evidence first."""
        for machine in self.missed:
            yield self.silence(machine)
        for report in self.machines:
            yield from report.findings

    def silence(self, machine: str) -> Finding:
        """The finding about a machine that returned no evidence, acknowledged or not."""
        finding = unreached(machine, self.missed[machine])
        (shown,), _ = apply([finding], self.acknowledged.values(), float("-inf"))
        return shown

    @property
    def machine_counts(self) -> dict[str, int]:
        """Returns verdict -> number of machines with it as their worst, worst first, for all five verdicts."""
        found = Counter(machine.verdict for machine in self.machines)
        found.update(self.silence(name).verdict for name in self.missed)
        return {verdict.value: found[verdict] for verdict in GRAVITY}

    def of(self, *verdicts: Verdict) -> list[Finding]:
        """The findings with these verdicts."""
        return [finding for finding in self.findings if finding.verdict in verdicts]

    def exit_code(self, *, strict: bool = False) -> ExitCode:
        """Returns VERIFICATION_FAILED for any FAIL, and with `strict` for unacknowledged WARN and UNKNOWN."""
        bad = {Verdict.FAIL} | ({Verdict.WARN, Verdict.UNKNOWN} if strict else set())
        found = any(item.verdict in bad and key_of(item) not in self.acknowledged for item in self.findings)
        return ExitCode.VERIFICATION_FAILED if found else ExitCode.OK

    def as_findings(self) -> tuple[Finding, ...]:
        """For a run report: each FAIL and WARN, UNKNOWN once per machine and reason, one PASS per good machine."""
        bad = tuple(_in_run_report(finding) for finding in self.of(Verdict.FAIL, Verdict.WARN))
        unknown = tuple(_unanswered(self.of(Verdict.UNKNOWN)))
        touched = {finding.subject for finding in self.of(*OPEN)}
        good = [report for report in self.machines if report.name not in touched]
        return (
            *bad,
            *unknown,
            *(Finding("health", Verdict.PASS, report.name, f"{len(report.findings)} checks") for report in good),
        )


def _unanswered(findings: Iterable[Finding]) -> Iterator[Finding]:
    """UNKNOWN findings, those of one machine for one reason as one: a missing driver leaves much unanswered."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.subject, finding.message.splitlines()[0]), []).append(finding)
    for (machine, message), group in alike.items():
        if len(group) == 1:
            yield _in_run_report(group[0])
            continue
        names = shortened([finding.id for finding in group], 3)
        remedy = next((finding.remedy for finding in group if finding.remedy), "")
        yield Finding(group[0].id, Verdict.UNKNOWN, machine, f"{message}: {names} could not be answered", remedy=remedy)


def unreached(machine: str, why: str) -> Finding:
    """The finding for a machine that returned no evidence."""
    return Finding(
        UNREACHED,
        Verdict.FAIL,
        machine,
        "the machine returned no evidence",
        value=why,
        expected="evidence",
        remedy="check power, network, login and Python on the machine",
        action=Action.REBOOT,
        source="own",
        evidence="ssh",
    )


def _in_run_report(finding: Finding) -> Finding:
    """The form in a report of `apply`: about machine and device, the action said in the remedy."""
    remedy = finding.remedy + (f" (action: {finding.action.value})" if finding.action is not Action.NONE else "")
    return Finding(finding.id, finding.verdict, finding.where, finding.message, finding.value, finding.expected, remedy)


def metrics(report: HealthReport) -> str:
    """The report for Prometheus: pai_health_verdict, _checks, _collected_timestamp_seconds and _finding."""
    silent = [Target(name, [report.silence(name)]) for name in report.missed]
    return prometheus.metrics(
        "pai_health",
        [*silent, *(Target(item.name, item.findings, item.sku, item.collected_at) for item in report.machines)],
    )


def text(report: HealthReport) -> str:
    """Returns the plain table: one line per machine, then the problems, worst first, with similar ones merged."""
    findings = list(report.findings)
    total = ", ".join(f"{number} {verdict}" for verdict, number in report.machine_counts.items() if number)
    machines = plural(len(report.machines) + len(report.missed), "machine")
    bad = ", ".join(f"{number} {verdict}" for verdict, number in counts(findings).items() if number and verdict in OPEN)
    last = f"{machines}: {total or 'none checked'} (findings: {bad or 'nothing to do'})"
    return "\n".join([*_machine_lines(report), *finding_lines(findings), "", last]) + "\n"


def _machine_lines(report: HealthReport) -> Iterator[str]:
    names = [*report.missed, *(machine.name for machine in report.machines)]
    width = max((len(name) for name in names), default=7)
    yield f"{'MACHINE':<{width}}  {'SKU':<12} VERDICT  " + " ".join(_COLUMNS.values()) + "  ACTION"
    for name in report.missed:
        yield f"{name:<{width}}  {'':<12} {report.silence(name).verdict.value:<8} no evidence"
    for machine in report.machines:
        number = counts(machine.findings)
        yield (
            f"{machine.name:<{width}}  {machine.sku:<12.12} {machine.verdict.value:<8} "
            + " ".join(f"{number[verdict]:>4}" for verdict in _COLUMNS)
            + f"  {machine.action.value if machine.action is not Action.NONE else ''}"
        ).rstrip()
