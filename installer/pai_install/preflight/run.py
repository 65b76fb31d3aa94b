"""One preflight from start to end: ask the machines, judge, force what the user wants forced."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Collection

from pai_install.engine.base import Engine
from pai_install.errors import ExitCode, PaiError
from pai_install.findings import Finding
from pai_install.preflight.gather import gather
from pai_install.preflight.judge import force, judge, require_known
from pai_install.preflight.report import PreflightReport
from pai_install.redact import Redactor, secret_values
from pai_install.site import Site


def run(
    engine: Engine,
    site: Site,
    *,
    hosts: Collection[str] = (),
    forced: Collection[str] = (),
    more: Collection[Finding] = (),
    clock: Callable[[], float] = time.monotonic,
) -> PreflightReport:
    """Looks at the machines and judges them; changes nothing there.

    hosts: the machines to judge (empty: all present ones); the control planes are looked at in any case, as the
    others are compared with them. forced: ids of checks that must not stop anything. more: findings about other
    things than machines, for the report.
    Raises PaiError for an unknown machine or check, and when Ansible cannot run at all.
    """
    require_known(forced)
    _require_present(site, hosts)
    began = clock()
    gathered = gather(engine, site, _watched(site, hosts))
    judged = judge(site, gathered.evidence, gathered.unreachable, hosts=hosts or None, architecture=platform.machine())
    findings = (*more, *judged)
    masked = _masked(force(findings, forced), site)
    return PreflightReport(site.directory.name, masked, tuple(dict.fromkeys(forced)), clock() - began)


def _watched(site: Site, hosts: Collection[str]) -> tuple[str, ...]:
    masters = {machine.hostname for machine in site.control_planes}
    names = (machine.hostname for machine in site.present_machines)
    return tuple(name for name in names if not hosts or name in hosts or name in masters)


def _require_present(site: Site, hosts: Collection[str]) -> None:
    present = [machine.hostname for machine in site.present_machines]
    strange = [name for name in hosts if name not in present]
    if strange:
        raise PaiError(
            f"--limit names {', '.join(strange)}, which the site does not have or has as absent",
            remedy=f"machines of the site: {', '.join(sorted(present)[:20])}",
            exit_code=ExitCode.USAGE,
        )


def _masked(findings: Collection[Finding], site: Site) -> tuple[Finding, ...]:
    """The findings with the site's passwords masked: what failed may have repeated one."""
    logins = [
        {"password": machine.ssh.password.get_secret_value()} for machine in site.machines if machine.ssh.password
    ]
    redactor = Redactor(secret_values(logins))
    return tuple(Finding(**{**redactor.mapping(finding.as_json()), "verdict": finding.verdict}) for finding in findings)
