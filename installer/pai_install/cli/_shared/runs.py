"""Several runs in a row for one command: one agreement, one document in JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from pai_install.app.context import App
from pai_install.cli._shared.act import How, SiteRequest, outcome_of
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.plan.model import Plan
from pai_install.report.data import report_data
from pai_install.report.model import Outcome
from pai_install.report.schemas import RUNS_SCHEMA_VERSION
from pai_install.run.environment import Environment
from pai_install.run.pipeline import Prepared
from pai_install.site.load import load_site


class Runs:
    """The runs of one command that the user has agreed to. verb: its words, for the lock and for messages."""

    def __init__(self, site_dir: Path, environment: Environment, how: How, verb: str) -> None:
        self._site_dir = site_dir
        self._environment = environment
        self._how = replace(how, yes=True)
        self._verb = verb
        self._outcomes: list[Outcome] = []

    def run(self, operation: Operation, made: SiteRequest | None = None) -> Outcome:
        """One of them; shown, but in JSON. made: as this request, but for the operation."""
        request = replace(made or SiteRequest(self._site_dir, operation), operation=operation)
        how = replace(self._how, goes_on=bool(self._outcomes))
        outcome = outcome_of(request, self._environment, how, quiet=how.as_json)
        assert outcome is not None  # noqa: S101 - the user has agreed
        self._outcomes.append(outcome)
        return outcome

    def standing(self, operation: Operation | None = None, made: SiteRequest | None = None) -> Prepared:
        """How machines stand against the site and its state; what an operation, `apply` by custom, would do."""
        accept_new = made is not None and made.accept_new_host_keys
        with (
            Terminal() as terminal,
            App(self._site_dir, self._environment, terminal, accept_new_host_keys=accept_new) as app,
        ):
            return app.dry_run(operation, verb=self._verb)

    def require_leader(self, plan: Plan) -> None:
        """No machine gets what cache and store, which do not answer, have never heard of. Raises PaiError."""
        leader = load_site(self._site_dir).site.control_planes[0].hostname
        if leader in plan.unreachable:
            raise PaiError(
                f"{leader} serves the machines and does not answer: {plan.unreachable[leader]}",
                code="leader-unreachable",
                remedy="nothing was changed; run the same command again when it answers",
                exit_code=ExitCode.UNREACHABLE,
            )

    def ended(self, code: int) -> int:
        """The exit code of them all; in JSON after their one document."""
        if self._how.as_json:
            runs = [report_data(outcome) for outcome in self._outcomes]
            click.echo(json.dumps({"schema_version": RUNS_SCHEMA_VERSION, "exit_code": code, "runs": runs}, indent=2))
        return code
