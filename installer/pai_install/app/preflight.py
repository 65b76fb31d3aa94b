"""Use case of preflight: evidence from the machines, verdicts, and a report in the state folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App
from pai_install.checks.runner import require_known
from pai_install.preflight import forms
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.preflight.document import preflight_document
from pai_install.preflight.report import PreflightReport
from pai_install.preflight.run import run
from pai_install.preflight.source import source_finding
from pai_install.run.state import open_state
from pai_install.system.files import write_atomic
from pai_install.system.parameters import Parameter
from pai_install.system.words import minute_text


class RunPreflight(BaseModel):
    """A preflight of the site's machines."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    limit: Annotated[tuple[str, ...], Parameter(metavar="HOST,...", split=True)] = Field(
        (), description="Check only these machines of the site."
    )
    forced: Annotated[tuple[str, ...], Parameter("--force-check", "ID")] = Field(
        (), description="Ignore failures of this check. Repeat for several checks."
    )


def run_preflight(app: App, request: RunPreflight) -> PreflightReport:
    """The verdicts. Changes nothing on the machines. Keeps the report below SITE/.pai/runs.

    Raises PaiError for an unknown check.
    """
    require_known(request.forced, CATALOGUE)
    site, state = app.site, open_state(app.site_dir)
    folder, now = state.new_run(datetime.now(UTC)), datetime.now(UTC)
    with app.environment.engine(state, folder, accept_new=app.accept_new_host_keys) as engine:
        report = run(engine, site, hosts=request.limit, forced=request.forced, more=(source_finding(site),))
    write_atomic(
        folder.path / "preflight.json", json.dumps(preflight_document(report).as_json(), indent=2) + "\n", mode=0o600
    )
    page = forms.html(report, when=minute_text(now), links=forms.BESIDE)
    write_atomic(folder.path / "preflight.html", page, mode=0o600)
    return report
