"""One preflight run: collect evidence, judge it, apply --force-check."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Collection

from pai_install.checks.finding import Finding, parse_finding
from pai_install.checks.runner import force, require_known
from pai_install.engine.base import Engine
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.preflight.gather import gather
from pai_install.preflight.judge import judge
from pai_install.preflight.report import PreflightReport
from pai_install.redact import Redactor
from pai_install.report.machines import machines_of
from pai_install.site import Site
from pai_install.site.selection import require_present, watched


def run(
    engine: Engine,
    site: Site,
    *,
    hosts: Collection[str] = (),
    forced: Collection[str] = (),
    more: Collection[Finding] = (),
    clock: Callable[[], float] = time.monotonic,
) -> PreflightReport:
    """Probes and checks the machines. Read-only.

    hosts: the machines to check (empty: all present ones). Control-plane nodes are always probed for comparison.
    forced: ids of checks that must not stop the operation. more: further findings for the report. Raises PaiError for
    an unknown machine or check, and if Ansible cannot run.
    """
    require_known(forced, CATALOGUE)
    require_present(site, hosts)
    began = clock()
    gathered = gather(engine, site, watched(site, hosts))
    judged = judge(site, gathered.evidence, gathered.unreachable, hosts=hosts or None, architecture=platform.machine())
    findings = (*more, *judged)
    masked = _masked(force(findings, forced), gathered.redactor)
    return PreflightReport(
        site.directory.name, masked, tuple(dict.fromkeys(forced)), clock() - began, machines_of(site)
    )


def _masked(findings: Collection[Finding], redactor: Redactor) -> tuple[Finding, ...]:
    """Returns the findings with the site's passwords masked, because error messages may repeat one."""
    return tuple(parse_finding(redactor.mapping(finding._asdict())) for finding in findings)
