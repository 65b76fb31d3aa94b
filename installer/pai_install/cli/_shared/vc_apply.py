"""`vc apply`: what would change and whose jobs that touches, the change, the way back where it is not taken."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.checks.verdict import Verdict
from pai_install.cli._shared.act import How, require_answer
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.runs import Runs
from pai_install.cli._shared.tell import say
from pai_install.cli._shared.vc_known import scheduling_at
from pai_install.cli._shared.vc_plan import change_of, read_kept
from pai_install.cli.options import format_option, site_option, yes_option
from pai_install.cluster.client import ClusterClient
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.vc_apply import VcApply, VcRestore
from pai_install.operations.verify import Verify
from pai_install.plan.addons import PHASE as ADDONS
from pai_install.report.model import HostStatus, Outcome
from pai_install.report.planned import plan_text
from pai_install.report.virtual_clusters_plan import ClustersChange, jobs_at_risk
from pai_install.report.virtual_clusters_plan import plan_text as change_text
from pai_install.run.environment import Environment
from pai_install.run.state import open_state, state_of
from pai_install.run.virtual_clusters import read_good, read_standings, write_good
from pai_install.schedulers.queue_status import CHECK, holds
from pai_install.scheduling.model import Scheduling
from pai_install.site.load import SERVICES, load_site

VERB = "vc apply"


@click.command
@site_option
@click.option("--force", is_flag=True, help="Also where jobs lose the virtual cluster, or its queue, that they are of.")
@click.option("--check", is_flag=True, help="Only show what would change, with differences.")
@yes_option
@format_option
@pass_environment
def apply(*, site_dir: Path, force: bool, check: bool, yes: bool, output_format: str, environment: Environment) -> int:
    """Bring the site's virtual clusters to the cluster, and nothing else of the site.

    First it says what `vc plan` says: which virtual clusters appear, go, grow or shrink, and whose jobs that touches.
    One that has jobs goes only with --force. Then come node labels and the objects of the scheduler, which is asked
    whether it has taken them. Where it has not, the virtual clusters with which it last came up are restored, and the
    command fails; HiveD is taken back by its bridge.

    What virtual clusters stand on is brought by `apply` alone. An interrupted run goes on where it was when the command
    is run again.
    """
    how = How(yes=yes, check=check, as_json=output_format == "json")
    require_answer(how)
    return _Asked(site_dir, environment, how).apply(force=force)


class _Asked:
    def __init__(self, site_dir: Path, environment: Environment, how: How) -> None:
        self._site_dir = site_dir
        self._environment = environment
        self._how = how
        self._site = load_site(site_dir).site
        self._wanted = scheduling_at(self._site)
        self._runs = Runs(site_dir, environment, how, VERB)
        self._note = state_of(site_dir).virtual_clusters

    def apply(self, *, force: bool) -> int:
        """From what would change to the exit code."""
        with self._environment.cluster(self._site, state_of(self._site_dir), accept_new=False) as cluster:
            before, noted = read_kept(cluster), read_good(self._note)
            change = change_of(cluster, self._site, before)
            good = self._last_good(cluster, before, noted)
        click.echo(change_text(change), nl=False, err=self._how.as_json)
        _require_same_scheduler(change)
        if not (force or self._how.check):
            _require_no_jobs_lost(change)
        operation = VcApply(unproven=noted is not None)
        if not self._agreed(operation):
            say("nothing was done")
            return ExitCode.PREFLIGHT_FAILED
        if good is not None and not self._how.check:
            open_state(self._site_dir)
            write_good(self._note, good)
        return self._runs.ended(self._carried_out(operation, good))

    def _last_good(
        self, cluster: ClusterClient, before: Scheduling | None, noted: Scheduling | None
    ) -> Scheduling | None:
        """With which the scheduler last came up: what it was given last, unless a run that gave it that did not end.

        None where it never had any.
        """
        if noted is None or noted.backend != self._wanted.backend:
            return before
        return before if before is not None and holds(read_standings(cluster, before)) else noted

    def _agreed(self, operation: VcApply) -> bool:
        """Shows the steps and asks, where there are any."""
        if self._how.yes or self._how.check:
            return True
        plan = self._runs.standing(operation).plan
        say(plan_text(plan))
        return plan.empty or click.confirm(f"{operation.question(plan, plan.hosts)}?", err=True)

    def _carried_out(self, operation: VcApply, good: Scheduling | None) -> int:
        """The exit code of the run; what the scheduler did not take is taken back."""
        outcome = self._runs.run(operation)
        if self._how.check or outcome.interrupted:
            return outcome.exit_code
        if _refused(outcome):
            self._take_back(good)
        elif _proven(outcome):
            self._note.unlink(missing_ok=True)
            if changed := _changed(outcome):
                return outcome.exit_code or self._runs.run(Verify(limit=changed)).exit_code
        return outcome.exit_code

    def _take_back(self, good: Scheduling | None) -> None:
        advice = f"correct {SERVICES}; `pai-install vc plan` compares it with the cluster"
        if self._wanted.backend == "hived":
            self._note.unlink(missing_ok=True)
            say(f"HiveD did not take these virtual clusters and goes on with the last that it came up with: {advice}")
            return
        if good is None or good == self._wanted:
            say("the scheduler did not take these virtual clusters, and there are no earlier ones to restore")
            return
        say("\nThe scheduler did not take these virtual clusters: restoring those with which it last came up")
        outcome = self._runs.run(VcRestore(good=good, tried=self._wanted))
        if outcome.exit_code == ExitCode.OK:
            self._note.unlink(missing_ok=True)
            say(f"the scheduler did not take these virtual clusters; the last that worked are back: {advice}")
        else:
            say("the last virtual clusters that worked could not be restored whole: run vc apply again")


def _require_same_scheduler(change: ClustersChange) -> None:
    """Raises PaiError: another scheduler is more than virtual clusters."""
    if change.before and change.before != change.after:
        raise PaiError(
            f"the cluster has the scheduler {change.before}, the site names {change.after}",
            code="scheduler-differs-from-cluster",
            remedy=f"pai-install scheduler switch --to {change.after} changes the scheduler",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _require_no_jobs_lost(change: ClustersChange) -> None:
    """Raises PaiError, naming them, for jobs that would be of no virtual cluster any longer."""
    if lost := jobs_at_risk(change):
        raise PaiError(
            f"{len(lost)} of the jobs would lose their virtual cluster",
            code="virtual-cluster-has-jobs",
            details="\n".join(lost),
            remedy="wait for these jobs or end them, or add --force",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _refused(outcome: Outcome) -> bool:
    """Whether the scheduler, or the API server for it, did not take what it was given."""
    failed = any(
        result.status is HostStatus.FAILED
        for phase in outcome.phases
        if phase.name == ADDONS
        for result in phase.hosts.values()
    )
    return failed or any(it.id == CHECK and it.verdict is Verdict.FAIL for it in outcome.findings)


def _changed(outcome: Outcome) -> tuple[str, ...]:
    """The machines on which something was changed, which are to be proven."""
    results = ((host, it.status) for phase in outcome.phases for host, it in phase.hosts.items())
    found = (host for host, status in results if status is HostStatus.CHANGED)
    return tuple(dict.fromkeys(found))


def _proven(outcome: Outcome) -> bool:
    """Whether the scheduler was asked and has taken it, or there was nothing to do."""
    return outcome.exit_code == ExitCode.OK or any(
        it.id == CHECK and it.verdict is not Verdict.FAIL for it in outcome.findings
    )
