"""The context of a use case: one site, one front end, and everything that opens once.

A verb that only reads must start fast, so the machinery of runs loads with the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pai_install.app.base import AppContext, RunOptions
from pai_install.errors import ExitCode

if TYPE_CHECKING:
    from pai_install.operations.operation import Operation
    from pai_install.plan.model import Plan
    from pai_install.report.model import Outcome
    from pai_install.run.pipeline import Prepared, Session


__all__ = ["App", "RunOptions"]
_DEFAULTS = RunOptions()


class App(AppContext):
    """Context of a use case. Close it to release connections: use it as a context manager."""

    def dry_run(self, operation: Operation | None = None, options: RunOptions = _DEFAULTS, verb: str = "") -> Prepared:
        """The plan of an operation (`apply` where left out), with the observation behind it. Changes nothing."""
        from pai_install.operations.install import Install  # noqa: PLC0415
        from pai_install.run.pipeline import prepare  # noqa: PLC0415

        with self.session(operation or Install(), options, verb) as session:
            return prepare(session)

    def inspect(self, operation: Operation, verb: str) -> tuple[Session, Prepared]:
        """As `dry_run`, for verbs that report: a site that the cluster cannot follow is a finding, not an error."""
        from pai_install.run.pipeline import prepare  # noqa: PLC0415

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
        from pai_install.app.running import run_operation  # noqa: PLC0415

        return run_operation(self, operation, options, agreed=agreed, shown=shown, before_changes=before_changes)

    def run_agreed(self, operation: Operation, options: RunOptions = _DEFAULTS) -> Outcome:
        """As `run`, for a run that belongs to work which the user agreed to."""
        outcome = self.run(operation, options, agreed=True)
        assert outcome is not None  # noqa: S101 - only a question can end a run before its outcome
        return outcome

    def exit_code(self, operation: Operation, options: RunOptions = _DEFAULTS) -> int:
        """As `run`, for verbs of one run: the exit code."""
        outcome = self.run(operation, options)
        return ExitCode.PREFLIGHT_FAILED if outcome is None else outcome.exit_code

    @contextmanager
    def session(self, operation: Operation, options: RunOptions = _DEFAULTS, verb: str = "") -> Iterator[Session]:
        """A run of the operation, before its observation. verb: the holder of the lock, if not the operation."""
        from pai_install.app.running import session_of  # noqa: PLC0415

        with session_of(self, operation, options, verb) as session:
            yield session

    def require_leader(self, plan: Plan) -> None:
        """Raises PaiError while the first control plane, which serves all machines, is unreachable."""
        from pai_install.plan.observation import require_leader  # noqa: PLC0415

        require_leader(self.site.control_planes[0].hostname, plan.unreachable)
