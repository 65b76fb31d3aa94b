"""The way of `apply`: read the site, look at the machines, plan; then, unless only asked, do it.

`plan` goes the same way and stops earlier; there is no second implementation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.engine.base import Engine
from pai_install.errors import ExitCode
from pai_install.plan.model import Plan
from pai_install.plan.phases import VERIFY
from pai_install.preflight.report import PreflightReport
from pai_install.redact import Redactor, secret_values
from pai_install.report.data import report_data
from pai_install.report.diffs import ChangeCollector, FileChange
from pai_install.report.html import html
from pai_install.report.markdown import markdown
from pai_install.report.model import PREFLIGHT, Outcome, PhaseResult
from pai_install.report.notices import Observer, PhaseFinished, PhaseStarted
from pai_install.report.planned import plan_data
from pai_install.run.admission import TITLE, Admission, admission, against_all
from pai_install.run.eventlog import EventLog
from pai_install.run.executor import execute
from pai_install.run.journal import Interrupted, Journal, interrupted_run
from pai_install.run.lock import site_lock
from pai_install.run.observe import Observation, observe
from pai_install.run.phase import Stage
from pai_install.run.signals import ending_like_ctrl_c, finishing
from pai_install.run.state import RunFolder, StateFolder, open_state
from pai_install.run.wiring import Wiring
from pai_install.site.load import LoadedSite
from pai_install.site.model import Site
from pai_install.site.selection import require_present, watched
from pai_install.system.files import write_atomic


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for. phases and limit narrow it; empty means everything.

    forced_checks: ids of preflight checks that must not stop anything.
    """

    site_dir: Path
    phases: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    accept_new_host_keys: bool = False
    forced_checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """A site that this process holds, with an engine ready; lives as long as the lock.

    interrupted: the run before this one, if it never ended. say: takes lines for the user.
    """

    request: Request
    loaded: LoadedSite
    wiring: Wiring
    state: StateFolder
    run: RunFolder
    engine: Engine
    progress: Observer
    events: Observer
    interrupted: Interrupted | None
    say: Callable[[str], None]

    @property
    def site(self) -> Site:
        """The site."""
        return self.loaded.site

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who is told what happens on the machines."""
        return (self.progress, self.events)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The plan and the observation that it was made from.

    standing: what that observation says of the cluster. preflight: of the machines that were never touched before,
    and admission which of them may be; both None where there are none.
    """

    plan: Plan
    observation: Observation
    observed: Mapping[str, Any]
    standing: tuple[Finding, ...] = ()
    preflight: PreflightReport | None = None
    admission: Admission | None = None

    @property
    def looked(self) -> tuple[PhaseResult, ...]:
        """The phases that have only looked so far."""
        return (self.observation.phase, *((self.admission.phase,) if self.admission else ()))

    @property
    def exit_code(self) -> ExitCode:
        """How the look ended: the same for every verb that goes no further."""
        code = Outcome(0.0, self.looked, check=True).exit_code
        lost = self.plan.unreachable and code in (ExitCode.OK, ExitCode.PREFLIGHT_FAILED)  # answered without facts
        return ExitCode.UNREACHABLE if lost else code

    @property
    def refused(self) -> dict[str, str]:
        """Machine -> why preflight refuses it."""
        return self.admission.refused if self.admission else {}


@contextmanager
def open_session(
    request: Request,
    wiring: Wiring,
    *,
    verb: str,
    progress: Observer,
    say: Callable[[str], None],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Session]:
    """Reads the site, takes its lock and starts the engine; SIGTERM counts as Ctrl-C inside.

    Raises SiteInvalid, and PaiError when another run holds the site.
    """
    loaded = wiring.load(request.site_dir)
    require_present(loaded.site, request.limit)
    state = open_state(request.site_dir)
    with ending_like_ctrl_c(), site_lock(state.path, verb):
        interrupted = interrupted_run(state.journal)
        run = state.new_run(now())
        with EventLog(run.events) as events, wiring.engine(state, run, request.accept_new_host_keys) as engine:
            yield Session(request, loaded, wiring, state, run, engine, progress, events, interrupted, say)


def prepare(session: Session) -> Prepared:
    """Looks at the machines and plans; writes plan.json into the run's folder. Changes nothing on machines."""
    site, wiring, request = session.site, session.wiring, session.request
    inventory = wiring.inventory(site, session.state, session.say)
    redactor = Redactor(secret_values(inventory.as_ansible()))
    stage = Stage(session.engine, session.observers, redactor)
    observation = observe(inventory, watched(site, request.limit), stage)
    observed = {host: wiring.parse(result) for host, result in observation.results.items()}
    plan = wiring.plan(
        site,
        inventory,
        observed,
        unreachable=observation.missed,
        phases=request.phases,
        limit=request.limit,
    )
    save_plan(session, plan)
    return Prepared(plan, observation, observed, wiring.judge(site, inventory, observed))


def admit(session: Session, prepared: Prepared) -> Prepared:
    """Looks for what is in the way on machines that a run would touch for the first time; changes nothing there.

    Writes preflight.json into the run's folder. Raises PaiError for an unknown check, KeyboardInterrupt on Ctrl-C.
    """
    looked_at = session.wiring.newcomers(prepared.plan, prepared.observed)
    if not looked_at:
        return prepared
    stage = Stage(session.engine, session.observers)
    stage.tell(PhaseStarted(PREFLIGHT, TITLE, looked_at, 1, 1))
    report = session.wiring.preflight(session.engine, session.site, looked_at, session.request.forced_checks)
    report = against_all(report, looked_at, prepared.observed)
    found = admission(report, looked_at=looked_at, planned=prepared.plan.hosts, lead=prepared.plan.lead)
    stage.tell(PhaseFinished(found.phase))
    write_atomic(session.run.path / "preflight.json", json.dumps(report.as_json(), indent=2) + "\n", mode=0o600)
    return replace(prepared, preflight=report, admission=found)


def preview(session: Session, prepared: Prepared, *, log: bool = True) -> tuple[Outcome, tuple[FileChange, ...]]:
    """Runs the plan in check mode: what each phase would change, with differences; changes nothing.

    log: whether its tasks belong into the run's events, as they do where nothing else follows.

    Phase verify is left out: it has nothing to prove before the others have run.
    """
    collector = ChangeCollector()
    changing = tuple(phase for phase in prepared.plan.phases if phase.name != VERIFY.name)
    outcome = execute(
        replace(prepared.plan, phases=changing),
        session.engine,
        (*(session.observers if log else (session.progress,)), collector),
        check=True,
        before=prepared.looked,
    )
    save_plan(session, prepared.plan, collector.changes)
    return outcome, collector.changes


def perform(session: Session, prepared: Prepared) -> Outcome:
    """Runs the plan for real and writes the reports. A Ctrl-C is in the Outcome."""
    with Journal(session.state.journal, session.run.name) as journal:
        outcome = execute(
            prepared.plan,
            session.engine,
            (*session.observers, journal),
            before=prepared.looked,
            gates=session.wiring.gates(session.site, session.state, session.engine),
            findings=_known(prepared),
        )
    with finishing():
        write_reports(session.run, outcome, title=f"{session.site.directory.resolve().name}, {session.run.name}")
    return outcome


def _known(prepared: Prepared) -> tuple[Finding, ...]:
    """What is to be said before anything ran: a run with work to do proves the cluster at its end, one without
    says how the cluster stands.
    """
    if prepared.plan.empty:
        return prepared.standing
    return prepared.admission.findings if prepared.admission else ()


def save_plan(session: Session, plan: Plan, changes: tuple[FileChange, ...] | None = None) -> None:
    """Writes the plan into the run's folder, for the owner only."""
    write_atomic(session.run.plan, json.dumps(plan_data(plan, changes), indent=2) + "\n", mode=0o600)


def write_reports(run: RunFolder, outcome: Outcome, *, title: str) -> None:
    """Writes report.json, report.md and report.html into the run's folder, for the owner only."""
    write_atomic(run.report("json"), json.dumps(report_data(outcome), indent=2) + "\n", mode=0o600)
    write_atomic(run.report("md"), markdown(outcome, title=title), mode=0o600)
    write_atomic(run.report("html"), html(outcome, title=title), mode=0o600)
