"""Use cases of health: check, watch, cordon, baselines, acknowledgements."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App
from pai_install.checks.explain import find_check
from pai_install.errors import ExitCode, PaiError
from pai_install.health.act.cordon import Cordoning
from pai_install.health.checkup import Accepted, AcknowledgementText, HealthRequest, HealthRun
from pai_install.health.judge.rules import CHECKS
from pai_install.health.memory.acknowledgement import Acknowledgement, end_of
from pai_install.health.memory.snapshot import Snapshot
from pai_install.health.memory.store import HealthStore
from pai_install.health.report import UNREACHED, HealthReport
from pai_install.health.watch import changes, open_findings
from pai_install.operations.health_cordon import HealthCordon
from pai_install.run.pipeline import perform, prepare
from pai_install.run.state import open_state
from pai_install.system.parameters import Parameter
from pai_install.system.plain import one_line


class AcknowledgeFinding(BaseModel):
    """Acknowledges a finding of the last run until a day, or revokes an acknowledgement."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    machine: Annotated[str, Parameter(positional=True, metavar="[MACHINE]")] = ""
    check: Annotated[str, Parameter(positional=True, metavar="[CHECK]")] = ""
    why: str = Field("", description="Reason, for readers of the report.")
    until: Annotated[str, Parameter(metavar="DAY")] = Field(
        "", description="End: 2026-12-01 (00:00 UTC), or a period: 12h, 7d, 2w."
    )
    device: Annotated[str, Parameter(default="all devices in the last report")] = Field(
        "", description="Bus id, port, or disk."
    )
    who: Annotated[str, Parameter(default="the current user")] = Field("", description="Author.")
    take_back: bool = Field(default=False, description="Revoke the acknowledgement now.")


def health_run(app: App, request: HealthRequest) -> HealthRun:
    """Returns the health run of the app's site. Without a site it reads saved evidence and keeps no history."""
    if request.source is not None and not (app.site_dir / "layout.yaml").exists():
        return HealthRun()
    site = app.site  # an invalid site gets no state folder
    return HealthRun(site, open_state(app.site_dir).health, app.open_engine, lambda: app.cluster, notify=app.notify)


def check_health(app: App, request: HealthRequest) -> HealthReport:
    """The health of machines and GPUs. Changes nothing on them."""
    return health_run(app, request).run(request)


def watch_health(
    app: App, request: HealthRequest, *, every_s: int, runs: int
) -> Iterator[tuple[HealthReport, list[str]]]:
    """Yields each report with its changes since the one before. runs: 0 for no end."""
    run, before = health_run(app, request), dict[Any, Any]()
    number = 0
    while True:
        number += 1
        report = run.run(request)
        after = open_findings(report)
        yield report, list(changes(before, after))
        if number == runs:
            return
        before = after
        time.sleep(every_s)


def cordon_unhealthy(app: App, report: HealthReport, max_cordoned: float) -> Cordoning:
    """Cordons unhealthy nodes and uncordons recovered ones, with the lock, journal, and report of a run.

    Raises PaiError while another run holds the site, and for a node that could not be patched.
    """
    operation = HealthCordon(max_cordoned=max_cordoned, report=report)
    with app.session(operation) as session:
        prepared = prepare(session)
        outcome = perform(session, prepared) if not prepared.plan.empty else None
    if outcome is not None and not outcome.ok:
        failure = next(iter(outcome.failures), None)
        if failure is None:
            # A run that is not OK and has no failure was interrupted.
            raise KeyboardInterrupt
        raise PaiError(
            f"{failure.host}: {failure.message}", code="cordon-failed", details=failure.evidence, remedy=failure.remedy
        )
    return operation.decision(prepared.observation)


def health_history(app: App, machine: str) -> Sequence[Snapshot]:
    """Earlier runs on a machine, the oldest first. Raises PaiError where there is none."""
    found = HealthStore(app.state.health, app.notify).history(machine)
    if not found:
        raise PaiError(
            f"cannot find a health run of {machine}: it has none",
            code="health-history-missing",
            exit_code=ExitCode.USAGE,
            remedy="run pai-install health",
        )
    return found


def baselines(app: App, request: HealthRequest, *, accept: bool) -> Accepted:
    """Returns the accepted baselines of GPUs. accept: accept the current values first."""
    run = health_run(app, request)
    return run.accept(request) if accept else Accepted(run.baselines(), {})


def acknowledge(app: App, request: AcknowledgeFinding) -> list[Acknowledgement]:
    """Adds or revokes an acknowledgement. Returns all current ones. Without a machine it only returns them.

    Raises PaiError for an unknown check, and for a missing reason or end.
    """
    run = health_run(app, HealthRequest())
    if not request.machine:
        return run.acknowledged()
    if not request.check:
        raise PaiError(
            "cannot acknowledge a finding: MACHINE or CHECK is missing",
            code="acknowledge-incomplete",
            exit_code=ExitCode.USAGE,
            remedy="name both: pai-install health acknowledge MACHINE CHECK",
        )
    if request.take_back:
        return run.take_back(request.machine, request.check, request.device)
    return run.acknowledge(request.machine, _known_check(request.check), _text(request))


def _known_check(name: str) -> str:
    return name if name == UNREACHED else find_check(name, CHECKS, listing="pai-install health explain").id


def _text(request: AcknowledgeFinding) -> AcknowledgementText:
    missing = [f"--{name}" for name in ("why", "until") if not getattr(request, name).strip()]
    if missing:
        raise PaiError(
            f"cannot acknowledge the finding: {' and '.join(missing)} is missing",
            code="acknowledge-incomplete",
            remedy=(
                'add both, for example: pai-install health acknowledge MACHINE CHECK --why "the card is '
                'ordered" --until 7d'
            ),
            exit_code=ExitCode.USAGE,
        )
    who = request.who or os.environ.get("SUDO_USER") or getpass.getuser()
    return AcknowledgementText(one_line(who), one_line(request.why), end_of(request.until, time.time()), request.device)
