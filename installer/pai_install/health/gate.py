"""The health check as the last word of an installation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from pai_install.checks.finding import Finding
from pai_install.engine.base import Engine
from pai_install.health.checkup import Checkup, CheckupRequest
from pai_install.site.model import Site


def health_gate(site: Site, folder: Path, engine: Engine) -> Callable[[Sequence[str]], tuple[Finding, ...]]:
    """The last step of `apply`: GPU checks where there are GPUs, machine checks everywhere, on an engine that is open.

    folder: where history and baselines of the site are. Called with machines, it gives every FAIL, WARN and UNKNOWN,
    and one PASS per machine without any. It changes nothing on the machines. Raises PaiError when the engine cannot
    run.
    """
    checkup = Checkup(site, folder, lambda: nullcontext(engine))
    return lambda machines: checkup.run(CheckupRequest(limit=tuple(machines))).as_findings()
