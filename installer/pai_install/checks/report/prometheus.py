"""The verdicts as Prometheus metrics, in the node exporter's text file format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pai_install.checks.finding import Finding, counts, worst
from pai_install.checks.report.text import by_subject
from pai_install.checks.verdict import OPEN, Verdict, costliest

_NUMBER = {Verdict.PASS: 0, Verdict.SKIP: 0, Verdict.WARN: 1, Verdict.UNKNOWN: 2, Verdict.FAIL: 3}
_NO_TIMES: Mapping[str, float] = {}


def metrics(
    prefix: str, findings: Iterable[Finding], *, skus: Mapping[str, str], collected: Mapping[str, float] = _NO_TIMES
) -> str:
    """Per machine its verdict and counts; per finding that is neither PASS nor SKIP a series of value 1.

    prefix: of every name, such as "pai_health". skus: machine -> its SKU. collected: machine -> when its evidence was
    collected, seconds since the epoch.
    """
    found = by_subject(findings)
    lines = (*_machines(prefix, found, skus), *_times(prefix, collected), *_findings(prefix, found))
    return "\n".join(lines) + "\n"


def _gauge(name: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"


def _machines(prefix: str, found: Mapping[str, list[Finding]], skus: Mapping[str, str]) -> Iterator[str]:
    yield from _gauge(f"{prefix}_verdict", "Gravest verdict of the machine: 0 pass, 1 warn, 2 unknown, 3 fail.")
    for name, findings in found.items():
        action = costliest(finding.action for finding in findings if finding.verdict is Verdict.FAIL)
        labels = _labels(machine=name, sku=skus.get(name, ""), action=action.value)
        yield f"{prefix}_verdict{labels} {_NUMBER[worst(findings)]}"
    yield from _gauge(f"{prefix}_checks", "Number of checks of the machine by verdict.")
    for name, findings in found.items():
        for verdict, number in counts(findings).items():
            yield f"{prefix}_checks{_labels(machine=name, verdict=verdict)} {number}"


def _times(prefix: str, collected: Mapping[str, float]) -> Iterator[str]:
    if collected:
        yield from _gauge(f"{prefix}_collected_timestamp_seconds", "When the machine's evidence was collected.")
    for name, time in collected.items():
        yield f"{prefix}_collected_timestamp_seconds{_labels(machine=name)} {time:.0f}"


def _findings(prefix: str, found: Mapping[str, list[Finding]]) -> Iterator[str]:
    yield from _gauge(f"{prefix}_finding", "One per finding that is not PASS or SKIP.")
    sick = (finding for findings in found.values() for finding in findings if finding.verdict in OPEN)
    labels = (
        _labels(
            machine=finding.subject,
            device=finding.device,
            check=finding.id,
            verdict=finding.verdict.value,
            action=finding.action.value,
        )
        for finding in sick
    )
    # Prometheus refuses a file with the same series twice
    yield from (f"{prefix}_finding{one} 1" for one in dict.fromkeys(labels))


def _labels(**values: str) -> str:
    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in values.items()) + "}"
