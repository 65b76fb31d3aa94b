"""The pipeline of every verb that acts: read the site, observe, plan, execute.

Nothing here knows an operation by name. `plan` runs the same pipeline and stops after the plan.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pai_install.checks.finding import Finding
from pai_install.checks.report.html import ReportMachine
from pai_install.cluster.client import ClusterClient
from pai_install.engine.base import Engine
from pai_install.errors import ExitCode
from pai_install.health.cluster.deprecated import deprecated_uses
from pai_install.plan.changes import refusal
from pai_install.plan.inventory import with_guests
from pai_install.plan.model import Inventory, Plan
from pai_install.plan.observation import Observation
from pai_install.plan.observed import parse_machines
from pai_install.plan.planner import new_machines
from pai_install.preflight.document import preflight_document
from pai_install.preflight.report import PreflightReport
from pai_install.report.data import run_report
from pai_install.report.diffs import ChangeCollector, FileChange
from pai_install.report.html import html
from pai_install.report.machines import machines_of
from pai_install.report.markdown import markdown
from pai_install.report.model import PREFLIGHT, Outcome, PhaseResult
from pai_install.report.notices import Observer, PhaseFinished, PhaseStarted
from pai_install.report.plan import plan_document
from pai_install.run.actions import Stage
from pai_install.run.adoption import adoption_refusal, with_adopted
from pai_install.run.await_cluster import await_cluster
from pai_install.run.environment import Environment
from pai_install.run.eventlog import EventLog
from pai_install.run.executor import Means, execute
from pai_install.run.journal import Interrupted, Journal, interrupted_run
from pai_install.run.local_certificates import box_certificates
from pai_install.run.observe import observe
from pai_install.run.preflight_gate import TITLE, PreflightGate, against_all, preflight_gate
from pai_install.run.request import Request
from pai_install.run.run_history import publish_run
from pai_install.run.scheduler_switch import jobs_in
from pai_install.run.signals import finishing
from pai_install.run.site_state import keep_state, take_over
from pai_install.run.state import RunFolder, StateFolder
from pai_install.run.verification_state import begun, ended, read_proof, write_proof
from pai_install.run.workspace import Workspace
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.read import scheduling_of
from pai_install.site.load import LoadedSite, load_site
from pai_install.site.model import Site
from pai_install.site.rotations import read_rotations
from pai_install.system.files import write_atomic


@dataclass(frozen=True, slots=True)
class Session:
    """A locked site with a ready engine, for the duration of the lock.

    interrupted: the previous run, if it never ended. say: receives lines for the user.
    """

    request: Request
    loaded: LoadedSite
    environment: Environment
    state: StateFolder
    run: RunFolder
    engine: Engine
    cluster: ClusterClient
    progress: Observer
    events: Observer
    interrupted: Interrupted | None
    notify: Callable[[str], None]

    @property
    def site(self) -> Site:
        """The site."""
        return self.loaded.site

    @property
    def observers(self) -> tuple[Observer, ...]:
        """The observers of the run."""
        return (self.progress, self.events)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan and its observation.

    look: result of the observation, if any. preflight: findings on machines before their first change. gate: admitted
    ones. Both None without such machines.
    """

    plan: Plan
    observation: Observation
    look: PhaseResult | None = None
    preflight: PreflightReport | None = None
    gate: PreflightGate | None = None

    @property
    def looked(self) -> tuple[PhaseResult, ...]:
        """The phases so far, all of them read-only."""
        return (*((self.look,) if self.look else ()), *((self.gate.phase,) if self.gate else ()))

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the observation, for verbs that stop after it."""
        code = Outcome(0.0, self.looked, check=True).exit_code
        lost = self.plan.unreachable and code in (ExitCode.OK, ExitCode.PREFLIGHT_FAILED)  # answered without facts
        return ExitCode.UNREACHABLE if lost else code

    @property
    def refused(self) -> dict[str, str]:
        """Machine -> why preflight refuses it."""
        return self.gate.refused if self.gate else {}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts with work that preflight lets in."""
        return tuple(host for host in self.plan.hosts if host not in self.refused)


@contextmanager
def open_session(
    request: Request,
    workspace: Workspace,
    *,
    progress: Observer,
    notify: Callable[[str], None],
    verb: str = "",
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Session]:
    """Locks the site and creates the folder of a run. SIGTERM acts as Ctrl-C inside.

    verb: the holder of the lock, if it is not the operation itself.

    Raises SiteInvalid, and PaiError if another process holds the site.
    """
    edited = request.services is not None or request.layout is not None
    site_dir = workspace.site_dir
    loaded = load_site(site_dir, services=request.services, layout=request.layout) if edited else workspace.loaded
    request.operation.require(loaded.site)
    with workspace.hold(verb or request.operation.name) as state:
        interrupted = interrupted_run(state.journal, notify)
        run = state.new_run(now())
        engine, cluster = workspace.engine_for(run), workspace.cluster_of(loaded.site)
        with EventLog(run.events) as events:
            yield Session(
                request,
                loaded,
                workspace.environment,
                state,
                run,
                engine,
                cluster,
                progress,
                events,
                interrupted,
                notify,
            )


def prepare(session: Session, *, insist: bool = True) -> Prepared:
    """Observes and plans, and writes plan.json to the run's folder. Changes nothing on machines.

    Components are downloaded after the observation: a site with unsupported changes is refused first. insist: raise
    PaiError for such a site. Otherwise the refusal is a finding.
    """
    site, operation = session.site, session.request.operation
    observation, look = _look(session)
    if insist and (changes := operation.refused_changes(site, observation)):
        raise refusal(changes, session.loaded.sources)
    unfit: tuple[Finding, ...] = ()
    if operation.configures:
        site, inventory, unfit = _configured(session, observation, insist=insist)
        observation = replace(observation, inventory=with_guests(inventory, operation.guests))
    if operation.queries:
        if session.interrupted:  # what it began on a control plane may still be at work
            await_cluster(session.cluster, session.notify)
        observation = replace(observation, answers=session.cluster.list(*operation.queries))
    # Without their scheduler, jobs would stay forever. They must be known before the first change.
    if insist and (before := operation.replaced_scheduler(site, observation)):
        scheduling = scheduling_of(site)
        devices = devices_of(scheduling) if scheduling is not None else ()
        observation = replace(observation, kept_jobs=jobs_in(session.cluster, before, devices))
    if operation.checks_deprecated:
        observation = replace(observation, deprecated=deprecated_uses(session.cluster))
    plan = operation.plan(site, observation)
    plan = replace(
        plan,
        operation=operation.name,
        arguments=dict(operation.arguments),
        findings=(*operation.known(site, observation, plan), *unfit),
        silent=observation.silent,
    )
    save_plan(session, plan)
    return Prepared(plan, observation, look)


def _configured(
    session: Session, observation: Observation, *, insist: bool
) -> tuple[Site, Inventory, tuple[Finding, ...]]:
    """Returns the site with adopted objects, its inventory with settings, and findings on objects that cannot be
    adopted.

    If all machines are silent, a controller host without state creates no authority, because an existing cluster may
    have one. Then no plan is possible, and connections are enough.
    """
    if observation.silent and not session.state.registry.exists():
        return session.site, observation.inventory, ()
    known = _taken_over(session, observation)
    versions = session.request.operation.versions(known, observation)
    inventory = session.environment.inventory(known, session.state, session.notify, versions)
    site, unfit = with_adopted(known, observation, inventory, session.cluster, session.notify)
    if insist and unfit:
        raise adoption_refusal(unfit)
    # An adopted claim changes settings of the site, so the inventory is computed again.
    if site is not known:
        inventory = session.environment.inventory(site, session.state, session.notify, versions)
    return site, inventory, unfit


def _taken_over(session: Session, observation: Observation) -> Site:
    """Returns the site with the state that a new controller host reads from its cluster."""
    if not take_over(session.site, observation, session.state, session.cluster, session.notify):
        return session.site
    return session.site.model_copy(update={"rotations": read_rotations(session.site.directory)})


def _look(session: Session) -> tuple[Observation, PhaseResult | None]:
    """Returns the observation, with an inventory of connections only, or None if the operation observes no machine."""
    inventory = with_guests(session.environment.connections(session.site), session.request.operation.guests)
    watched = session.request.operation.watched(session.site)
    if not watched:
        return Observation(inventory, {}, {}, time.time()), None
    look = observe(inventory, watched, Stage(session.engine, session.observers, inventory.redactor))
    control_planes = {machine.hostname for machine in session.site.control_planes}
    machines, unusable = parse_machines(look.results, control_planes)
    unproven = read_proof(session.state.proof).reasons
    missed = {**look.missed, **unusable}
    box = box_certificates(session.state, [machine.hostip for machine in session.site.control_planes])
    return Observation(inventory, machines, missed, time.time(), unproven, box=box), look.phase


def admit(session: Session, prepared: Prepared) -> Prepared:
    """Runs preflight on machines before their first change. Read-only on the machines.

    Writes preflight.json to the run's folder. Raises PaiError for an unknown check, KeyboardInterrupt on Ctrl-C.
    """
    machines = prepared.observation.machines
    looked_at = new_machines(prepared.plan, machines)
    if not looked_at:
        return prepared
    stage = Stage(session.engine, session.observers)
    stage.notify(PhaseStarted(PREFLIGHT, TITLE, looked_at, 1, 1))
    report = session.environment.preflight(session.engine, session.site, looked_at, session.request.forced_checks)
    report = against_all(report, looked_at, machines)
    found = preflight_gate(report, looked_at=looked_at, planned=prepared.plan.hosts, leader=prepared.plan.leader)
    stage.notify(PhaseFinished(found.phase))
    document = preflight_document(report).as_json()
    write_atomic(session.run.path / "preflight.json", json.dumps(document, indent=2) + "\n", mode=0o600)
    return replace(prepared, preflight=report, gate=found)


def preview(session: Session, prepared: Prepared, *, log: bool = True) -> tuple[Outcome, tuple[FileChange, ...]]:
    """Runs the plan in check mode: the changes of each step with diffs. Changes nothing.

    log: record its tasks in the run's events, for runs without other steps.

    Steps without a preview in check mode are omitted.
    """
    collector = ChangeCollector()
    outcome = execute(
        replace(prepared.plan, steps=tuple(step for step in prepared.plan.steps if step.previewed)),
        Means(session.engine),
        (*(session.observers if log else (session.progress,)), collector),
        check=True,
        before=prepared.looked,
    )
    save_plan(session, prepared.plan, collector.changes)
    return outcome, collector.changes


def perform(session: Session, prepared: Prepared) -> Outcome:
    """Runs the plan for real and writes the reports. A Ctrl-C is in the Outcome."""
    plan, run, path = prepared.plan, session.run.name, session.state.proof
    proof = read_proof(path)
    # Before the first change, so that a killed run leaves its machines marked as unverified.
    if (unsure := begun(proof, plan, prepared.hosts, run)) != proof:
        write_proof(path, unsure)
    with Journal(session.state.journal, session.run.name) as journal:
        outcome = execute(
            prepared.plan,
            _means(session) if plan.steps else Means(session.engine),
            (*session.observers, journal),
            before=prepared.looked,
            findings=_known(prepared),
        )
    if _has_cluster(session, prepared, outcome) and not outcome.interrupted:
        kept = keep_state(session.state, session.cluster)
        outcome = replace(outcome, findings=(*outcome.findings, *kept))
        publish_run(session.site, session.cluster, outcome, run, session.request.operation.name, session.notify)
    # A second Ctrl-C or a closed terminal must not prevent the report.
    with finishing():
        if unsure != (known := ended(proof, plan, outcome, run)):
            write_proof(path, known)
        title = f"{session.site.directory.resolve().name}, {session.run.name}"
        write_reports(session.run, outcome, title=title, machines=machines_of(session.site))
    return outcome


def _has_cluster(session: Session, prepared: Prepared, outcome: Outcome) -> bool:
    """Whether a control plane was seen in a cluster that stays, or made one now."""
    # A reset takes the cluster away, so a question to its API would only time out.
    if session.request.operation.ends_cluster:
        return False
    made = any(
        phase.name == "control-plane" and any(it.status.good for it in phase.hosts.values()) for phase in outcome.phases
    )
    machines = prepared.observation.machines.values()
    return made or any(seen.kubernetes.control_plane and seen.kubernetes.joined for seen in machines)


def _means(session: Session) -> Means:
    work = session.environment.local_work
    local = work(session.site, session.state, session.engine, session.cluster, session.notify)
    return Means(session.engine, session.cluster, local)


def _known(prepared: Prepared) -> tuple[Finding, ...]:
    """Returns findings known before the run: of the operation about the observation, and causes of refused machines."""
    return (*prepared.plan.findings, *(prepared.gate.findings if prepared.gate else ()))


def save_plan(session: Session, plan: Plan, changes: tuple[FileChange, ...] | None = None) -> None:
    """Writes the plan into the run's folder, for the owner only."""
    write_atomic(session.run.plan, json.dumps(plan_document(plan, changes).as_json(), indent=2) + "\n", mode=0o600)


def write_reports(run: RunFolder, outcome: Outcome, *, title: str, machines: Sequence[ReportMachine] = ()) -> None:
    """Writes report.json, report.md and report.html into the run's folder, for the owner only."""
    write_atomic(run.report("json"), json.dumps(run_report(outcome).as_json(), indent=2) + "\n", mode=0o600)
    write_atomic(run.report("md"), markdown(outcome, title=title), mode=0o600)
    write_atomic(run.report("html"), html(outcome, title=title, machines=machines), mode=0o600)
