"""The report as one self-contained HTML page: machines x checks as a coloured grid, a click says why."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pai_install.checks.check import Check
from pai_install.checks.finding import Finding, worst
from pai_install.checks.report.html import Link, Page, ReportMachine, parts, render
from pai_install.checks.verdict import GRAVITY, Action, Verdict, gravest
from pai_install.health.evidence.raw import raw_name
from pai_install.health.judge.rules import CHECKS
from pai_install.health.report import UNREACHED, HealthReport
from pai_install.system.words import plural

_LETTER = {Verdict.FAIL: "F", Verdict.WARN: "W", Verdict.UNKNOWN: "U", Verdict.PASS: "P", Verdict.SKIP: "S"}
_ORDER = tuple(_LETTER[verdict] for verdict in GRAVITY)
_UNREACHED = (
    UNREACHED,
    "The machine gives evidence",
    "SSH, the collector's answer",
    "FAIL when it gives none",
    "own",
    "check power, network, login and Python on the machine",
)


LINKS = (Link("pai-install health history MACHINE"), Link("pai-install explain CHECK"))


def html(report: HealthReport, *, title: str, raw: str = "") -> str:
    """Returns the whole page. Shared texts of findings are stored once, so the page of a thousand machines stays small.

    raw: link to the folder with the raw evidence of the machines, or "".
    """
    findings = list(report.findings)
    machine_counts = {verdict: number for verdict, number in report.machine_counts.items() if number}
    data = json.dumps(_data(report, raw), separators=(",", ":"))
    looked_at = (*report.missed, *(item.name for item in report.machines))
    skus = {item.name: ReportMachine(item.name, sku=item.sku) for item in report.machines}
    known = {machine.name: machine for machine in report.described}
    shown = [known.get(name) or skus.get(name) or ReportMachine(name) for name in looked_at]
    page = Page(title, worst(findings), f"{plural(len(shown), 'machine')} checked", shown, LINKS)
    # "</script>" or "<!--" in a value would end the element or swallow the page; \u003c is the same letter in JSON
    escaped = data.replace("<", "\\u003c")
    shown_parts = {"page": page, "data": escaped, "machine_counts": machine_counts, **parts(page, findings)}
    return render("health.html", package="pai_install.health", **shown_parts)


def raw_links(folder: Path | None, page: Path | None) -> str:
    """The folder with raw evidence as a page (None: standard output, in this folder) reaches it, for a URL."""
    if folder is None:
        return ""
    return quote(os.path.relpath(folder, page.parent if page else Path()).replace(os.sep, "/"))


def _data(report: HealthReport, raw: str) -> dict[str, Any]:
    checks = [_UNREACHED, *map(_words, CHECKS.values())]
    index = {row[0]: number for number, row in enumerate(checks)}
    texts: dict[tuple[str, ...], int] = {}
    machines = [_machine(name, "", "reboot", [report.silence(name)], index, texts) for name in report.missed]
    machines += [
        _machine(item.name, item.sku, item.action.value, item.findings, index, texts) for item in report.machines
    ]
    about = {machine.name: f"{', '.join(machine.roles)} {machine.address}".strip() for machine in report.described}
    for machine in machines:
        machine["i"] = about.get(machine["n"], "")
    return {
        "checks": [list(row) for row in checks],
        "texts": [list(text) for text in texts],
        "machines": sorted(machines, key=_gravity),
        # a machine that returned no evidence has no file
        "raw": {item.name: f"{raw}/{quote(raw_name(item.name))}" for item in report.machines} if raw else {},
    }


def _words(check: Check[Any]) -> tuple[str, ...]:
    return check.id, check.title, check.reads, check.rule, check.source, check.remedy


def _gravity(machine: Mapping[str, Any]) -> tuple[int, int, int]:
    """The order of rows: the gravest verdict first, of these the costliest action, then the most findings."""
    worst_letter = next((number for number, letter in enumerate(_ORDER) if letter in machine["v"]), len(_ORDER))
    return worst_letter, -Action(machine["a"]).rank, -machine["v"].count(_ORDER[0])


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
