"""Runs of an operation for a use case: plan, question, execution, report. Loaded with the first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pai_install.app.base import AppContext, RunOptions
from pai_install.app.frontend import (
    ChangesReady,
    FrontendObserver,
    PlanReady,
    PreflightReady,
    Question,
    RunEnded,
)
from pai_install.documents.problem import text_lines
from pai_install.operations.operation import Operation
from pai_install.report.model import Outcome
from pai_install.run.pipeline import Prepared, Session, admit, open_session, perform, prepare, preview
from pai_install.run.request import Request
from pai_install.run.saved import SavedPlan, read_plan
from pai_install.run.signals import finishing
from pai_install.site.rules.pending import pending


@contextmanager
def session_of(app: AppContext, operation: Operation, options: RunOptions, verb: str = "") -> Iterator[Session]:
    """A run of the operation, before its observation. verb: the holder of the lock, if not the operation."""
    request = Request(operation, options.forced_checks, options.services, options.layout)
    observer = FrontendObserver(app.frontend)
    with open_session(request, app, progress=observer, notify=app.notify, verb=verb) as session:
        yield session
    app.forget_site()  # the run may have written a file of the site


def run_operation(
    app: AppContext,
    operation: Operation,
    options: RunOptions,
    *,
    agreed: bool,
    shown: bool,
    before_changes: Callable[[], None] | None,
) -> Outcome | None:
    """As App.run."""
    # Before anything is observed: without a terminal no one could answer later.
    if not (agreed or options.check):
        app.frontend.require_answers()
    saved = read_plan(options.plan_file) if options.plan_file is not None else None
    with session_of(app, operation, options) as session:
        announce(app, session)
        prepared = _prepare(app, session, saved)
        if options.check:
            outcome, changes = preview(session, prepared)
            app.frontend.notify(ChangesReady(changes))
            app.notify(f"plan: {session.run.plan}")
        elif agreed or _agreed(app, session, prepared):
            if before_changes is not None:
                before_changes()
            outcome = perform(session, prepared)
        else:
            app.notify("no changes made")
            return None
        with finishing():
            app.outcomes.append(outcome)
            if shown:
                report = None if options.check else session.run.report("html")
                app.frontend.notify(RunEnded(outcome, report))
        return outcome


def announce(app: AppContext, session: Session) -> None:
    """Warnings, features without effect, and unfinished work: once per command."""
    if app.announced:
        return
    app.announced = True
    for line in text_lines(session.loaded.problems):
        app.notify(line)
    for line in pending(session.site):
        app.notify(f"not yet: {line}")
    app.announce_rotations()
    before = session.interrupted
    if before is not None:
        where = f" in phase {before.phase} ({', '.join(before.hosts)})" if before.phase else ""
        what = f"{before.run} ({before.operation})" if before.operation else before.run
        app.notify(f"the run {what} was interrupted{where}; observing the machines again")


def _prepare(app: AppContext, session: Session, saved: SavedPlan | None) -> Prepared:
    """Plans, admits new machines, and compares with the saved plan."""
    prepared = prepare(session)
    if saved is not None:
        saved.require_unmoved(prepared.plan)
    prepared = admit(session, prepared)
    if prepared.preflight is not None:
        app.frontend.notify(PreflightReady(prepared.preflight))
    app.frontend.notify(PlanReady(prepared.plan))
    # Last, as it runs Ansible in check mode on the machines, which takes the longest.
    if saved is not None and saved.previewed:
        _require_same_changes(app, session, prepared, saved)
    return prepared


def _require_same_changes(app: AppContext, session: Session, prepared: Prepared, saved: SavedPlan) -> None:
    """Raises PaiError when the machines would change otherwise than saved, KeyboardInterrupt on Ctrl-C."""
    app.notify("comparing the changes with the saved plan")
    outcome, changes = preview(session, prepared, log=False)
    if outcome.interrupted:
        raise KeyboardInterrupt
    saved.require_same(changes)


def _agreed(app: AppContext, session: Session, prepared: Prepared) -> bool:
    if not prepared.hosts:
        return True
    operation = session.request.operation
    without = f", leaving out {', '.join(prepared.refused)}" if prepared.refused else ""
    text = f"{operation.question(prepared.plan, prepared.hosts)}{without}"
    return app.frontend.confirm(Question(text, operation.typed(prepared.plan), prepared.plan))
