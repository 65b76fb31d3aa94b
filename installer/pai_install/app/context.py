"""The context of a use case: one site, one front end, and everything that opens once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pai_install.app.frontend import (
    ChangesReady,
    Frontend,
    FrontendObserver,
    Message,
    PlanReady,
    PreflightReady,
    Question,
    RunEnded,
)
from pai_install.documents.problem import text_lines
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.install import Install
from pai_install.operations.operation import Operation
from pai_install.plan.model import Plan
from pai_install.report.model import Outcome
from pai_install.run.environment import Environment
from pai_install.run.pipeline import Prepared, Session, admit, open_session, perform, prepare, preview
from pai_install.run.request import Request
from pai_install.run.saved import SavedPlan, read_plan
from pai_install.run.signals import finishing
from pai_install.run.workspace import Workspace
from pai_install.site.rules.pending import pending
from pai_install.storage.rotation import left_to_do


class RunOptions(BaseModel):
    """Options of a run, whatever its operation.

    check: preview only. plan_file: the run must match this saved plan. forced_checks: preflight checks to ignore.
    services, layout: texts to use in place of the site's files; None for the files themselves.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    check: bool = False
    plan_file: Path | None = None
    forced_checks: tuple[str, ...] = ()
    services: str | None = None
    layout: str | None = None


_DEFAULTS = RunOptions()


class App(Workspace):
    """What a use case works with. Close it to release connections: use it as a context manager.

    outcomes: the results of its runs so far.
    """

    def __init__(
        self, site_dir: Path, environment: Environment, frontend: Frontend, *, accept_new_host_keys: bool = False
    ) -> None:
        super().__init__(site_dir, environment, accept_new_host_keys=accept_new_host_keys)
        self.frontend = frontend
        self.outcomes: list[Outcome] = []
        self._announced = False

    def say(self, text: str) -> None:
        """Sends a line for a person."""
        self.frontend.notify(Message(text))

    def confirm(self, text: str) -> bool:
        """Asks a question; says so when the answer is no."""
        agreed = self.frontend.confirm(Question(text))
        if not agreed:
            self.say("no changes made")
        return agreed

    def dry_run(self, operation: Operation | None = None, options: RunOptions = _DEFAULTS, verb: str = "") -> Prepared:
        """The plan of an operation (`apply` where left out), with the observation behind it. Changes nothing."""
        with self.session(operation or Install(), options, verb) as session:
            return prepare(session)

    def inspect(self, operation: Operation, verb: str) -> tuple[Session, Prepared]:
        """As `dry_run`, for verbs that report: a site that the cluster cannot follow is a finding, not an error."""
        with self.session(operation, _DEFAULTS, verb) as session:
            return session, prepare(session, insist=False)

    def run(
        self,
        operation: Operation,
        options: RunOptions = _DEFAULTS,
        *,
        agreed: bool = False,
        shown: bool = True,
        before_changes: Callable[[], None] | None = None,
    ) -> Outcome | None:
        """Plans, asks, runs, and reports. Returns None where the front end declined.

        agreed: the user agreed to this run already. shown: whether the result goes to the front end.
        before_changes: called between the agreement and the first change.
        Raises PaiError where the front end cannot answer, and for a plan that differs from options.plan_file.
        """
        if not (agreed or options.check):
            self.frontend.require_answers()
        saved = read_plan(options.plan_file) if options.plan_file is not None else None
        with self.session(operation, options) as session:
            self.announce(session)
            prepared = self._prepare(session, saved)
            if options.check:
                outcome, changes = preview(session, prepared)
                self.frontend.notify(ChangesReady(changes))
                self.say(f"plan: {session.run.plan}")
            elif agreed or self._agreed(session, prepared):
                if before_changes is not None:
                    before_changes()
                outcome = perform(session, prepared)
            else:
                self.say("no changes made")
                return None
            with finishing():
                self.outcomes.append(outcome)
                if shown:
                    report = None if options.check else session.run.report("html")
                    self.frontend.notify(RunEnded(outcome, report))
            return outcome

    def run_agreed(self, operation: Operation, options: RunOptions = _DEFAULTS) -> Outcome:
        """As `run`, for a run that belongs to work which the user agreed to."""
        outcome = self.run(operation, options, agreed=True)
        assert outcome is not None  # noqa: S101 - only a question can end a run before its outcome
        return outcome

    def exit_code(self, operation: Operation, options: RunOptions = _DEFAULTS) -> int:
        """As `run`, for verbs of one run: the exit code."""
        outcome = self.run(operation, options)
        return ExitCode.PREFLIGHT_FAILED if outcome is None else outcome.exit_code

    def require_leader(self, plan: Plan) -> None:
        """Raises PaiError while the first control plane, which serves all machines, is unreachable."""
        leader = self.site.control_planes[0].hostname
        if leader in plan.unreachable:
            raise PaiError(
                f"{leader} serves the machines and does not answer: {plan.unreachable[leader]}",
                remedy="nothing was changed; run the same command again when it answers",
                code="leader-unreachable",
                exit_code=ExitCode.UNREACHABLE,
            )

    @contextmanager
    def session(self, operation: Operation, options: RunOptions = _DEFAULTS, verb: str = "") -> Iterator[Session]:
        """A run of the operation, before its observation. verb: the holder of the lock, if not the operation."""
        request = Request(operation, options.forced_checks, options.services, options.layout)
        observer = FrontendObserver(self.frontend)
        with open_session(request, self, progress=observer, say=self.say, verb=verb) as session:
            yield session
        self._loaded = None  # the run may have written a file of the site

    def announce(self, session: Session) -> None:
        """Warnings, features without effect, and unfinished work: once per command."""
        if self._announced:
            return
        self._announced = True
        for line in text_lines(session.loaded.problems):
            self.say(line)
        for line in pending(session.site):
            self.say(f"not yet: {line}")
        self.announce_rotations()
        before = session.interrupted
        if before is not None:
            where = f" in phase {before.phase} ({', '.join(before.hosts)})" if before.phase else ""
            what = f"{before.run} ({before.operation})" if before.operation else before.run
            self.say(f"the run {what} was interrupted{where}; observing the machines again")

    def skip_announcement(self) -> None:
        """For a process that announced the site before."""
        self._announced = True

    def announce_rotations(self) -> None:
        """Says which rotations of storages are unfinished."""
        for name, rotation in self.site.rotations.items():
            if line := left_to_do(name, rotation):
                self.say(f"storage {name}: {line}")

    def _prepare(self, session: Session, saved: SavedPlan | None) -> Prepared:
        """Plans, admits new machines, and compares with the saved plan."""
        prepared = prepare(session)
        if saved is not None:
            saved.require_unmoved(prepared.plan)
        prepared = admit(session, prepared)
        if prepared.preflight is not None:
            self.frontend.notify(PreflightReady(prepared.preflight))
        self.frontend.notify(PlanReady(prepared.plan))
        if saved is not None and saved.previewed:
            self._require_same_changes(session, prepared, saved)
        return prepared

    def _require_same_changes(self, session: Session, prepared: Prepared, saved: SavedPlan) -> None:
        """Raises PaiError when the machines would change otherwise than saved, KeyboardInterrupt on Ctrl-C."""
        self.say("comparing the changes with the saved plan")
        outcome, changes = preview(session, prepared, log=False)
        if outcome.interrupted:
            raise KeyboardInterrupt
        saved.require_same(changes)

    def _agreed(self, session: Session, prepared: Prepared) -> bool:
        if not prepared.hosts:
            return True
        operation = session.request.operation
        without = f", leaving out {', '.join(prepared.refused)}" if prepared.refused else ""
        text = f"{operation.question(prepared.plan, prepared.hosts)}{without}"
        return self.frontend.confirm(Question(text, operation.typed(prepared.plan), prepared.plan))
