"""The report as one self-contained HTML page: machines x checks as a coloured grid, a click says why."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pai_install.checks.finding import Finding, counts, worst
from pai_install.checks.report.html import Link, Page, ReportMachine, parts, render
from pai_install.checks.verdict import Verdict, gravest
from pai_install.health.judge.rules import CHECKS
from pai_install.health.report import UNREACHED, HealthReport
from pai_install.system.words import plural

_LETTER = {Verdict.FAIL: "F", Verdict.WARN: "W", Verdict.UNKNOWN: "U", Verdict.PASS: "P", Verdict.SKIP: "S"}


LINKS = (Link("pai-install health history MACHINE"), Link("pai-install explain CHECK"))


def html(report: HealthReport, *, title: str) -> str:
    """The whole page. Texts that many findings share are stored once: a thousand machines stay a small page."""
    findings = list(report.findings)
    data = json.dumps(_data(report), separators=(",", ":"))
    looked_at = (*report.missed, *(item.name for item in report.machines))
    skus = {item.name: ReportMachine(item.name, sku=item.sku) for item in report.machines}
    known = {machine.name: machine for machine in report.described}
    shown = [known.get(name) or skus.get(name) or ReportMachine(name) for name in looked_at]
    page = Page(title, worst(findings), f"{plural(len(shown), 'machine')} checked", shown, LINKS)
    # "</script>" or "<!--" in a value would end the element or swallow the page; \u003c is the same letter in JSON
    escaped = data.replace("<", "\\u003c")
    return render("health.html", package="pai_install.health", page=page, data=escaped, **parts(page, findings))


def _data(report: HealthReport) -> dict[str, Any]:
    checks = {UNREACHED: "The machine gives evidence", **{name: check.title for name, check in CHECKS.items()}}
    index = {name: number for number, name in enumerate(checks)}
    texts: dict[tuple[str, ...], int] = {}
    machines = [_machine(name, "", "reboot", [report.silence(name)], index, texts) for name in report.missed]
    machines += [
        _machine(item.name, item.sku, item.action.value, item.findings, index, texts) for item in report.machines
    ]
    return {
        "checks": list(checks.items()),
        "verdicts": counts(report.findings),
        "texts": [list(text) for text in texts],
        "machines": machines,
    }


def _machine(
    name: str,
    sku: str,
    action: str,
    findings: Iterable[Finding],
    index: dict[str, int],
    texts: dict[tuple[str, ...], int],
) -> dict[str, Any]:
    verdicts: dict[str, list[Verdict]] = {}
    seen: dict[str, dict[str, None]] = {}  # check -> the values of all devices that pass, each once
    rows = []
    for finding in findings:
        verdicts.setdefault(finding.id, []).append(finding.verdict)
        if finding.verdict is Verdict.PASS and finding.value:
            seen.setdefault(finding.id, {})[finding.value] = None
        if finding.verdict is not Verdict.PASS:
            text = (
                _LETTER[finding.verdict],
                finding.message,
                finding.expected,
                finding.remedy,
                finding.action.value,
                finding.evidence,
                finding.source,
            )
            number = texts.setdefault(text, len(texts))
            rows.append([index[finding.id], finding.device, number, finding.value])
    letters = "".join(_LETTER[gravest(verdicts[check])] if check in verdicts else " " for check in index)
    passes = [
        texts.setdefault((", ".join(seen.get(check, ())),), len(texts))
        for check in index
        if check in verdicts and gravest(verdicts[check]) is Verdict.PASS
    ]
    return {"n": name, "k": sku, "a": action, "v": letters, "f": rows, "p": passes}
