"""Use cases that change virtual clusters: in the cluster, and in the site's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App, RunOptions
from pai_install.app.frontend import ClustersChangeReady
from pai_install.app.last_applied import last_applied
from pai_install.app.site_edit import edit_services
from pai_install.app.virtual_clusters import change_of
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.vc_apply import VcApply, VcRestore, VcVerify
from pai_install.plan.addons import PHASE as ADDONS
from pai_install.report.model import HostStatus, Outcome
from pai_install.report.virtual_clusters import NONE
from pai_install.report.virtual_clusters_plan import ClustersChange, jobs_at_risk
from pai_install.run.verification_state import read_proof
from pai_install.run.virtual_clusters import read_good, read_object_statuses, write_good
from pai_install.run.workflow import StageFailed, StageStopped, Workflow, WorkflowStage, WorkflowStore, never_done
from pai_install.schedulers.hived.migration import everything, hived_block_of, lost_in_hived, sections_of, within_hived
from pai_install.schedulers.queue_status import CHECK, holds
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.scheduling.read import migrated_of, remarks_of
from pai_install.site.groups import PlacedGroup, administrates, groups_of
from pai_install.site.load import SERVICES, read_site
from pai_install.site.model import Site
from pai_install.site_edit.sections import with_block, with_sections, without_sections
from pai_install.site_edit.virtual_clusters import admitted, kept_by
from pai_install.system.words import plural

_SECTIONS = ("scheduler", "virtual-clusters")
_ADVICE = f"correct {SERVICES}, and compare it with the cluster by running `pai-install vc plan`"


class ApplyVirtualClusters(BaseModel):
    """Applies the site's virtual clusters."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    force: bool = Field(default=False, description="Continue if jobs lose their virtual cluster or its queue.")


def apply_virtual_clusters(app: App, request: ApplyVirtualClusters, options: RunOptions) -> int:
    """Applies the virtual clusters, verifies changed machines, and rolls back changes that the scheduler rejects.

    Takes the lock once and opens Ansible once. Returns the exit code.
    Raises PaiError for another scheduler, and for jobs that would lose their virtual cluster.
    """
    if not options.check:
        app.frontend.require_answers()
    desired = app.profile.require_scheduling()
    with app.hold("vc apply"):
        # Read under the lock, as another command could change both in between.
        before, note = last_applied(app.cluster), app.state.virtual_clusters
        change, noted = change_of(app, before), read_good(note)
        app.frontend.notify(ClustersChangeReady(change))
        _require_same_scheduler(change)
        if not (request.force or options.check):
            _require_no_jobs_lost(change)
        good = _last_good(app, desired, before, noted)

        application = _Application(app, options, desired, good)
        # A note of an interrupted run means that no run asked the scheduler after it.
        operation = VcApply(unproven=noted is not None)
        return Workflow((application.stage(operation),), application, app.frontend.notify).advance()


def _last_good(app: App, desired: Scheduling, before: Scheduling | None, noted: Scheduling | None) -> Scheduling | None:
    """Returns the last virtual clusters that the scheduler accepted, or None.

    noted: virtual clusters before an interrupted run.
    """
    if noted is None or noted.backend != desired.backend:
        return before
    # The note counts until the scheduler is seen to accept what the cluster has now.
    return before if before is not None and holds(read_object_statuses(app.cluster, before)) else noted


class _Application(WorkflowStore[None]):
    """The stage that applies virtual clusters. Its state is the note with the last that the scheduler accepted."""

    def __init__(self, app: App, options: RunOptions, desired: Scheduling, good: Scheduling | None) -> None:
        self.app = app
        self.options = options
        self.desired = desired
        self.good = good
        self._changed: tuple[str, ...] = ()

    def read(self) -> None:
        """Reads nothing: the run finds the remaining work."""

    def stage(self, operation: VcApply) -> WorkflowStage[None]:
        """Apply, verify the changed machines, or roll back."""
        title = "Apply the virtual clusters"
        return WorkflowStage("apply", title, never_done, lambda: self._apply(operation), self._verify, self._roll_back)

    def _apply(self, operation: VcApply) -> int:
        # The note is written before the first change, so that the next command knows the way back after a kill.
        outcome = self.app.run(operation, self.options, before_changes=self._keep_good)
        if outcome is None:
            raise StageStopped(ExitCode.PREFLIGHT_FAILED)
        if self.options.check or outcome.interrupted:
            raise StageStopped(outcome.exit_code)
        if _rejected(outcome):
            raise StageFailed(outcome.exit_code)
        if _accepted(outcome):
            self._forget_good()
            self._changed = _changed(outcome)
        return outcome.exit_code

    def _verify(self) -> int:
        """Verifies the quota of a queue. Names the machines that other runs left unverified."""
        if not self._changed:
            return ExitCode.OK
        code = self.app.run_agreed(VcVerify(machines=self._changed)).exit_code
        if left := [host for host in read_proof(self.app.state.proof).unproven if host in self._changed]:
            self.app.notify(f"not verified since an earlier run: {', '.join(left)}. Run pai-install verify")
        return code

    def _keep_good(self) -> None:
        if self.good is not None:
            write_good(self.app.state.virtual_clusters, self.good)

    def _roll_back(self) -> None:
        notify = self.app.notify
        if self.desired.backend == "hived":
            self._forget_good()
            notify(f"HiveD rejected these virtual clusters and keeps the last that it accepted: {_ADVICE}")
        elif self.good is None or self.good == self.desired:
            notify("the scheduler rejected these virtual clusters, and there are no earlier ones to restore")
        else:
            restored = self.app.run_agreed(VcRestore(good=self.good, tried=self.desired))
            if restored.exit_code == ExitCode.OK:
                self._forget_good()
                notify(f"the scheduler rejected these virtual clusters; the last good ones are restored: {_ADVICE}")
            else:
                notify("the last good virtual clusters could not be restored completely: run vc apply again")

    def _forget_good(self) -> None:
        self.app.state.virtual_clusters.unlink(missing_ok=True)


def _require_same_scheduler(change: ClustersChange) -> None:
    """Raises PaiError where the site names another scheduler than the cluster has."""
    if change.before and change.before != change.after:
        raise PaiError(
            f"cannot apply the virtual clusters: the cluster has the scheduler {change.before}, and the "
            f"site has {change.after}",
            code="scheduler-differs-from-cluster",
            remedy=f"run pai-install scheduler switch --to {change.after}",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _require_no_jobs_lost(change: ClustersChange) -> None:
    """Raises PaiError, with the jobs, where jobs would lose their virtual cluster."""
    if lost := jobs_at_risk(change):
        raise PaiError(
            f"cannot apply the virtual clusters: {plural(len(lost), 'job')} would lose the virtual cluster",
            code="virtual-cluster-has-jobs",
            details="\n".join(lost),
            remedy="wait for these jobs, stop them, or add --force",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _rejected(outcome: Outcome) -> bool:
    """Whether the scheduler, or the API server for it, rejected the objects."""
    failed = any(
        result.status is HostStatus.FAILED
        for phase in outcome.phases
        if phase.name == ADDONS
        for result in phase.hosts.values()
    )
    return failed or any(it.id == CHECK and it.verdict is Verdict.FAIL for it in outcome.findings)


def _accepted(outcome: Outcome) -> bool:
    """Whether the scheduler was asked and accepts the objects, or there was nothing to do."""
    return outcome.exit_code == ExitCode.OK or any(
        it.id == CHECK and it.verdict is not Verdict.FAIL for it in outcome.findings
    )


def _changed(outcome: Outcome) -> tuple[str, ...]:
    """The changed machines."""
    results = ((host, it.status) for phase in outcome.phases for host, it in phase.hosts.items())
    return tuple(dict.fromkeys(host for host, status in results if status is HostStatus.CHANGED))


class MigrateVirtualClusters(BaseModel):
    """Rewrites virtual clusters for another scheduler."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    to: Backend = Field(default="kueue", description="The scheduler. hived: HiveD's block in place of the sections.")
    write: bool = Field(default=False, description="Edit services-configuration.yaml instead of printing the text.")


@dataclass(frozen=True, slots=True)
class MigratedText:
    """Virtual clusters as text for services-configuration.yaml, empty if the file has it."""

    text: str
    exit_code: int = ExitCode.OK


def migrate_virtual_clusters(app: App, request: MigrateVirtualClusters) -> MigratedText:
    """The virtual clusters for the scheduler request.to. With request.write the text is in the site's file.

    Raises PaiError for a site without virtual clusters, and where the file cannot be edited.
    """
    site = app.site
    scheduling = migrated_of(everything(site))
    if scheduling is None:
        raise PaiError(
            "cannot migrate virtual clusters: the site has none to migrate",
            code="migrate-without-hived-block",
            remedy=NONE.strip(),
            exit_code=ExitCode.USAGE,
        )
    hived = request.to == "hived"
    desired = within_hived(scheduling) if hived else replace(scheduling, backend=request.to)
    lost = tuple(lost_in_hived(scheduling) if hived else remarks_of(everything(site)))
    for line in lost:
        app.notify(f"without a counterpart: {line}")
    if not request.write:
        return MigratedText(_text(site, desired))
    return MigratedText("", edit_services(app, "vc migrate", lambda now, text: _edited(app, now, text, desired)))


def _text(site: Site, desired: Scheduling) -> str:
    if desired.backend != "hived":
        return sections_of(desired, [group.name for group in groups_of(site.services)])
    rows = hived_block_of(desired).splitlines()
    return "hivedscheduler:\n  config: |\n" + "".join(f"    {row}\n" for row in rows)


def _edited(app: App, site: Site, text: str, desired: Scheduling) -> str:
    """The edited text. Raises PaiError where it would not give the desired virtual clusters."""
    sections = site.services.scheduler is not None
    if desired.backend == "hived":
        edited = _as_block(site, text, desired) if sections else text
    elif sections:
        edited = kept_by(text, desired.backend)
    else:
        edited = with_sections(text, _text(site, desired))
    after = read_site(app.site_dir, services=edited).site
    if after is not None and migrated_of(everything(after)) != desired:
        raise PaiError(
            "cannot write the file: the result would have another meaning. No changes made",
            code="virtual-clusters-not-editable",
            remedy="copy the output of pai-install vc migrate into the file",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    return edited


def _as_block(site: Site, text: str, desired: Scheduling) -> str:
    """HiveD's block. The groups of each virtual cluster go to acls, as in OpenPAI."""
    edited = without_sections(text, _SECTIONS)
    groups = groups_of(site.services)
    for cluster in desired.clusters:
        if len(cluster.groups) < len(groups):
            for group in _without_acl([one for one in groups if one.name in cluster.groups], cluster.name):
                edited = admitted(edited, group.path, cluster.name)
    return with_block(edited, "hivedscheduler", "config", hived_block_of(desired))


def _without_acl(groups: Sequence[PlacedGroup], cluster: str) -> Iterator[PlacedGroup]:
    """Yields groups without the virtual cluster in their acls. Administrators need no acl beside other groups."""
    others = [group for group in groups if not administrates(group)]
    for group in others or groups:
        if cluster not in group.group.extension.acls.virtual_clusters:
            yield group
