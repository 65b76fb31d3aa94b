"""Publishes the result of a run in the cluster, for the console."""

from __future__ import annotations

from collections.abc import Callable

from pai_install.cluster.client import ApiError, ClusterClient, NoClusterError
from pai_install.report.model import Outcome
from pai_install.report.run_history import RUNS, is_worth_keeping, summary_of, with_run
from pai_install.site.console import has_console
from pai_install.site.model import Site


def publish_run(
    site: Site, cluster: ClusterClient, outcome: Outcome, run: str, verb: str, notify: Callable[[str], None]
) -> None:
    """Adds a run that changed or found something. No other step depends on it."""
    if not (has_console(site) and is_worth_keeping(outcome)):
        return
    try:
        (found,) = cluster.get([RUNS])
        cluster.apply([with_run(found, summary_of(outcome, run, verb))], force=True)
    except (NoClusterError, ApiError) as error:
        notify(f"the console does not show this run: {error.message}")
