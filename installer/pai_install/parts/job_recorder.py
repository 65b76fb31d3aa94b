"""Records the history of jobs: a service on the control-plane nodes, and an add-on with its rights in the cluster."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict
from typing import Any

from pai_install.parts.context import Context
from pai_install.parts.gpu_use import has_jobs
from pai_install.parts.part import Part, RoleVariables, everywhere
from pai_install.site import Machine, Site
from pai_install.site.groups import groups_of
from pai_install.site.schedulers import scheduler_of
from pai_install.site.use_limits import acts_of, all_limits
from pai_install.users.recorder import recorded_kinds, recorder_objects


class JobRecorderVariables(RoleVariables):
    """server: URL of the API. namespaces: of groups. kinds: of jobs, GROUP/RESOURCE. log_bytes: of each pod.

    limits: by virtual cluster, empty if jobs are only listed. ledger_months: complete months of GPU hours to keep.
    reads_kueue: whether Kueue queues the jobs.
    """

    role = "job_recorder"
    server: str
    namespaces: tuple[str, ...]
    kinds: tuple[str, ...]
    keep_days: int
    most: int
    log_bytes: int
    limits: dict[str, tuple[dict[str, Any], ...]]
    ledger_months: int
    reads_kueue: bool


class JobRecorder(Part):
    """Every control plane of a site that has jobs: one of them records, the others stand by."""

    name = "job_recorder"
    phase = "addons"
    model = JobRecorderVariables
    after = ("api_proxy", "control_plane", "addon.job_recorder")
    removable = True

    def applies(self, site: Site, machine: Machine) -> bool:
        """The control planes, also where it is to be taken away."""
        del site
        return machine.control_plane

    def variables(self, context: Context, machine: Machine) -> JobRecorderVariables | None:
        """Returns the same variables for all nodes, or None without groups, batch scheduler, or records."""
        del machine
        site = context.site
        if not has_recorder(site):
            return None
        kept = site.services.job_records
        return JobRecorderVariables(
            server=f"https://{context.endpoint}",
            namespaces=_namespaces(site),
            kinds=tuple(recorded_kinds(scheduler_of(site))),
            keep_days=kept.keep_days,
            most=kept.keep_per_group,
            log_bytes=kept.log_kib * 1024,
            limits=_limits(site),
            ledger_months=kept.ledger_months,
            reads_kueue=scheduler_of(site) == "kueue",
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)


def has_recorder(site: Site) -> bool:
    """Returns whether the site has groups with jobs of a batch scheduler, and keeps records of them."""
    return has_jobs(site) and bool(site.services.job_records.keep_days)


def recorder_values(context: Context) -> dict[str, Any]:
    """For the add-on's template."""
    site = context.site
    return {"objects": list(recorder_objects(scheduler_of(site), _namespaces(site), acts_of(site)))}


def _namespaces(site: Site) -> tuple[str, ...]:
    return tuple(sorted({group.namespace for group in groups_of(site.services)}))


def _limits(site: Site) -> dict[str, tuple[dict[str, Any], ...]]:
    if not acts_of(site):
        return {}
    return {name: tuple(asdict(limit) for limit in limits.all) for name, limits in all_limits(site).items()}
