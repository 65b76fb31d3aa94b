"""The health check as the last word of an installation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.engine.base import Engine
from pai_install.errors import ExitCode, PaiError
from pai_install.health.checkup import HealthRequest, HealthRun
from pai_install.site.model import Site


def health_gate(
    site: Site, folder: Path, engine: Engine, notify: Callable[[str], None]
) -> Callable[[Sequence[str]], tuple[Finding, ...]]:
    """The last step of `apply`: GPU checks where there are GPUs, machine checks everywhere, on an engine that is open.

    folder: where history and baselines of the site are. Called with machines, it gives every FAIL, WARN and UNKNOWN,
    and one PASS per machine without any. It changes nothing on the machines. Raises PaiError when the engine cannot
    run.
    """
    checkup = HealthRun(site, folder, lambda: nullcontext(engine), notify=notify)
    return lambda machines: checkup.run(HealthRequest(limit=tuple(machines))).as_findings()


def passed(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, where none of them is a FAIL: the gate between batches. Raises PaiError that names each FAIL."""
    failed = [finding for finding in findings if finding.verdict is Verdict.FAIL]
    if failed:
        raise PaiError(
            f"cannot uncordon {', '.join(dict.fromkeys(finding.subject for finding in failed))}: unhealthy",
            code="machine-unhealthy-after-change",
            details="\n".join(f"{one.subject}: {one.message} [{one.id}]" for one in failed),
            remedy="follow the remedies of pai-install health, then run pai-install node uncordon",
            exit_code=ExitCode.VERIFICATION_FAILED,
        )
    return tuple(findings)
