"""One run over all machines: its reports, its exit code, its JSON and text forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.checks.report.prometheus import metrics
from pai_install.checks.verdict import Action, Verdict, gravest
from pai_install.errors import ExitCode
from pai_install.health.judge.evaluate import MachineReport

SCHEMA_VERSION = 1
_ORDER = (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN, Verdict.PASS, Verdict.SKIP)
UNREACHED = "machine-reachable"


@dataclass(frozen=True, slots=True)
class HealthReport:
    """All machines of one run. missed: machine -> why it gave no evidence, a FAIL of its own."""

    machines: tuple[MachineReport, ...]
    missed: Mapping[str, str] = field(default_factory=dict)
    site: str = ""

    @property
    def findings(self) -> Iterator[Finding]:
        """Every finding, machines that gave no evidence first."""
        for machine, why in self.missed.items():
            yield unreached(machine, why)
        for report in self.machines:
            yield from report.findings

    def of(self, *verdicts: Verdict) -> list[Finding]:
        """The findings with these verdicts."""
        return [finding for finding in self.findings if finding.verdict in verdicts]

    def exit_code(self, *, strict: bool = False) -> ExitCode:
        """VERIFICATION_FAILED for any FAIL; with `strict` also for WARN and UNKNOWN."""
        bad = {Verdict.FAIL} | ({Verdict.WARN, Verdict.UNKNOWN} if strict else set())
        found = any(finding.verdict in bad for finding in self.findings)
        return ExitCode.VERIFICATION_FAILED if found else ExitCode.OK

    def neutral(self) -> tuple[Finding, ...]:
        """What a run report of `apply` shows: FAIL and WARN each, UNKNOWN once per machine and reason, and one PASS
        per good machine.
        """
        bad = tuple(_in_run_report(finding) for finding in self.of(Verdict.FAIL, Verdict.WARN))
        unknown = tuple(_unanswered(self.of(Verdict.UNKNOWN)))
        touched = {finding.subject for finding in self.of(Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN)}
        good = [report for report in self.machines if report.name not in touched]
        return (
            *bad,
            *unknown,
            *(Finding("health", Verdict.PASS, report.name, f"{len(report.findings)} checks") for report in good),
        )

    def metrics(self) -> str:
        """The verdicts for an existing Prometheus."""
        skus = {report.name: report.sku for report in self.machines}
        times = {report.name: report.collected_at for report in self.machines}
        return metrics("pai_health", self.findings, skus=skus, collected=times)

    def as_json(self, *, everything: bool = False, strict: bool = False) -> dict[str, Any]:
        """The JSON form; PASS and SKIP findings only with `everything`, else as counts."""
        return {
            "schema_version": SCHEMA_VERSION,
            "site": self.site,
            "exit_code": int(self.exit_code(strict=strict)),
            "verdicts": counts(self.findings),
            "unreachable": dict(self.missed),
            "machines": [_machine_json(report, everything=everything) for report in self.machines],
        }


def _unanswered(findings: Iterable[Finding]) -> Iterator[Finding]:
    """UNKNOWN findings, those of one machine for one reason as one: a missing driver leaves much unanswered."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.subject, finding.message.splitlines()[0]), []).append(finding)
    for (machine, message), group in alike.items():
        if len(group) == 1:
            yield _in_run_report(group[0])
            continue
        checks = [finding.id for finding in group]
        names = ", ".join(checks[:3]) + (f" and {len(checks) - 3} more" if len(checks) > 3 else "")
        remedy = next((finding.remedy for finding in group if finding.remedy), "")
        yield Finding(group[0].id, Verdict.UNKNOWN, machine, f"{message}: {names} could not be answered", remedy=remedy)


def unreached(machine: str, why: str) -> Finding:
    """The finding for a machine that gave no evidence."""
    return Finding(
        UNREACHED,
        Verdict.FAIL,
        machine,
        "the machine gave no evidence",
        value=why,
        expected="evidence",
        remedy="check power, network, login and Python on the machine",
        action=Action.REBOOT,
        source="own",
        evidence="ssh",
    )


# field of a finding in the published JSON of health, which had its own form before there was one for all
_PUBLISHED = {"id": "check", "subject": "machine", "source": "threshold_source"}
_FIELDS = (
    "id", "subject", "device", "verdict", "message", "value", "expected", "source", "evidence", "remedy", "action"
)  # fmt: skip


def finding_json(finding: Finding) -> dict[str, str]:
    """The published JSON form of one finding (docs/reference/health.schema.json); empty fields are left out."""
    texts = {name: str(getattr(finding, name)) for name in _FIELDS}
    return {_PUBLISHED.get(name, name): text for name, text in texts.items() if text}


def _in_run_report(finding: Finding) -> Finding:
    """The form in a report of `apply`: about machine and device, the action said in the remedy."""
    remedy = finding.remedy + (f" (action: {finding.action.value})" if finding.action is not Action.NONE else "")
    return Finding(finding.id, finding.verdict, finding.where, finding.message, finding.value, finding.expected, remedy)


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Verdict -> how many, all five verdicts always there."""
    found = Counter(finding.verdict for finding in findings)
    return {verdict.value: found.get(verdict, 0) for verdict in _ORDER}


def _machine_json(report: MachineReport, *, everything: bool) -> dict[str, Any]:
    quiet = () if everything else (Verdict.PASS, Verdict.SKIP)
    return {
        "name": report.name,
        "sku": report.sku,
        "collected_at": report.collected_at,
        "verdict": report.verdict.value,
        "action": report.action.value,
        "verdicts": counts(report.findings),
        "findings": [finding_json(finding) for finding in report.findings if finding.verdict not in quiet],
    }


def text(report: HealthReport) -> str:
    """The plain table: one line per machine, then what is wrong, the gravest first, alike things once."""
    lines = list(_machine_lines(report))
    for verdict in (Verdict.FAIL, Verdict.WARN):
        lines.extend(_finding_lines(report.of(verdict)))
    lines.extend(_unknown_lines(report.of(Verdict.UNKNOWN)))
    total = counts(report.findings)
    lines.append("")
    lines.append(
        f"{len(report.machines) + len(report.missed)} machines: "
        + ", ".join(f"{number} {verdict}" for verdict, number in total.items() if number)
    )
    return "\n".join(lines) + "\n"


def _machine_lines(report: HealthReport) -> Iterator[str]:
    names = [*report.missed, *(machine.name for machine in report.machines)]
    width = max((len(name) for name in names), default=7)
    yield f"{'MACHINE':<{width}}  {'SKU':<12} VERDICT  FAIL WARN UNKN PASS SKIP  ACTION"
    for name in report.missed:
        yield f"{name:<{width}}  {'':<12} FAIL     no evidence"
    for machine in report.machines:
        number = counts(machine.findings)
        yield (
            f"{machine.name:<{width}}  {machine.sku:<12.12} {_word(machine):<8} "
            + " ".join(f"{number[verdict.value]:>4}" for verdict in _ORDER)
            + f"  {machine.action.value if machine.action is not Action.NONE else ''}"
        ).rstrip()


def _word(machine: MachineReport) -> str:
    return gravest(finding.verdict for finding in machine.findings).value


def _finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.id, finding.message, finding.remedy), []).append(finding)
    for (check, message, remedy), group in alike.items():
        first = group[0]
        yield ""
        yield f"{first.verdict.value} {check}: {message}"
        for finding in group[:5]:
            seen = f"  {finding.value}" if finding.value else ""
            wanted = f" (expected {finding.expected})" if finding.expected else ""
            yield f"  {finding.where}{seen}{wanted}"
        if len(group) > 5:
            yield f"  and {len(group) - 5} more"
        if remedy:
            action = f" [{first.action.value}]" if first.action is not Action.NONE else ""
            yield f"  what to do: {remedy}{action}"


def _unknown_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """One line per reason and machines, with all checks it is about: much is unknown where a driver hangs."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        reasons.setdefault((finding.id, finding.message.splitlines()[0]), []).append(finding.where)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (check, message), subjects in reasons.items():
        alike.setdefault((message, tuple(subjects)), []).append(check)
    if alike:
        yield ""
    for (message, about), checks in alike.items():
        names = ", ".join(checks[:3]) + (f" and {len(checks) - 3} more" if len(checks) > 3 else "")
        more = f" and {len(about) - 2} more" if len(about) > 2 else ""
        yield f"UNKNOWN {names}: {message} ({', '.join(about[:2])}{more})"
