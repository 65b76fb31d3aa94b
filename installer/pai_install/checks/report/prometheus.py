"""Findings as Prometheus metrics in the node exporter's text file format. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pai_install.checks.finding import Finding, counts, worst
from pai_install.checks.verdict import OPEN, Verdict, costliest

_NUMBER = {Verdict.PASS: 0, Verdict.SKIP: 0, Verdict.WARN: 1, Verdict.UNKNOWN: 2, Verdict.FAIL: 3}
Row = tuple[Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Target:
    """Metrics of one machine. collected_at: seconds since the epoch, None when it returned no evidence."""

    machine: str
    findings: Collection[Finding]
    sku: str = ""
    collected_at: float | None = None

    @property
    def action(self) -> str:
        """The costliest action that a FAIL asks for."""
        return costliest(finding.action for finding in self.findings if finding.verdict is Verdict.FAIL).value


def metrics(prefix: str, targets: Sequence[Target]) -> str:
    """Returns verdict and counts per machine, and a series of value 1 per finding that needs attention.

    prefix: of all names, for example "pai_health".
    """
    # A machine that never answered has no counts. Zeros would look like a machine without problems.
    seen = [(item, item.collected_at) for item in targets if item.collected_at is not None]
    numbers = (
        ({"machine": item.machine, "verdict": verdict}, number)
        for item, _ in seen
        for verdict, number in counts(item.findings).items()
    )
    gauges = (
        ("verdict", "Gravest verdict of the machine: 0 pass, 1 warn, 2 unknown, 3 fail.", map(_verdict, targets)),
        ("checks", "Number of checks of the machine by verdict.", numbers),
        (
            "collected_timestamp_seconds",
            "When the machine's evidence was collected.",
            (({"machine": item.machine}, when) for item, when in seen),
        ),
        ("finding", "One per finding that is not PASS or SKIP.", _findings(targets)),
    )
    return "\n".join(line for name, text, rows in gauges for line in _gauge(f"{prefix}_{name}", text, rows)) + "\n"


def _gauge(name: str, text: str, rows: Iterable[Row]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for labels, number in rows:
        words = ",".join(f'{label}="{_quoted(value)}"' for label, value in labels.items())
        yield f"{name}{{{words}}} {number:.0f}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _verdict(item: Target) -> Row:
    return {"machine": item.machine, "sku": item.sku, "action": item.action}, _NUMBER[worst(item.findings)]


def _findings(targets: Iterable[Target]) -> Iterator[Row]:
    """Each series once: Prometheus refuses a file with the same one twice."""
    # Prometheus refuses the whole text if one series is in it twice.
    samples = {
        (finding.subject, finding.device, finding.id, finding.verdict.value, finding.action.value): None
        for item in targets
        for finding in item.findings
        if finding.verdict in OPEN
    }
    for values in samples:
        yield dict(zip(("machine", "device", "check", "verdict", "action"), values, strict=True)), 1
