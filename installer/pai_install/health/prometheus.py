"""The verdicts as Prometheus metrics, in the node exporter's text file format."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.checks.verdict import Verdict
from pai_install.health.report import HealthReport, counts

_NUMBER = {Verdict.PASS: 0, Verdict.SKIP: 0, Verdict.WARN: 1, Verdict.UNKNOWN: 2, Verdict.FAIL: 3}


def metrics(report: HealthReport) -> str:
    """Per machine its verdict and counts; per finding that is neither PASS nor SKIP a series of value 1."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: HealthReport) -> Iterator[str]:
    yield "# HELP pai_health_verdict Gravest verdict of the machine: 0 pass, 1 warn, 2 unknown, 3 fail."
    yield "# TYPE pai_health_verdict gauge"
    for machine in report.missed:
        yield f"pai_health_verdict{_labels(machine=machine, sku='', action='reboot')} 3"
    for item in report.machines:
        labels = _labels(machine=item.name, sku=item.sku, action=item.action.value)
        yield f"pai_health_verdict{labels} {_NUMBER[item.verdict]}"
    yield "# HELP pai_health_checks Number of checks of the machine by verdict."
    yield "# TYPE pai_health_checks gauge"
    for item in report.machines:
        for verdict, number in counts(item.findings).items():
            yield f"pai_health_checks{_labels(machine=item.name, verdict=verdict)} {number}"
    yield "# HELP pai_health_collected_timestamp_seconds When the machine's evidence was collected."
    yield "# TYPE pai_health_collected_timestamp_seconds gauge"
    for item in report.machines:
        yield f"pai_health_collected_timestamp_seconds{_labels(machine=item.name)} {item.collected_at:.0f}"
    yield "# HELP pai_health_finding One per finding that is not PASS or SKIP."
    yield "# TYPE pai_health_finding gauge"
    seen = set()
    for finding in report.of(Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN):
        labels = _labels(
            machine=finding.subject,
            device=finding.device,
            check=finding.id,
            verdict=finding.verdict.value,
            action=finding.action.value,
        )
        if labels not in seen:  # Prometheus refuses a file with the same series twice
            seen.add(labels)
            yield f"pai_health_finding{labels} 1"


def _labels(**values: str) -> str:
    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in values.items()) + "}"
