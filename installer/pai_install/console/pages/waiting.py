"""Why a job waits: its quota, the holders of this quota, and how busy their GPUs are."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pai_install.app.job_quota import HiddenJobs, QuotaJob, quota_of_job, utilization_in, visible_jobs
from pai_install.console.endpoint import ApiCall
from pai_install.console.job_access import directory
from pai_install.console.openpai.job import full_name, gpus_of
from pai_install.errors import PaiError
from pai_install.jobs.gpu_utilization import JobUtilization
from pai_install.jobs.state import JobState
from pai_install.kube.model import Ref

# holders that a page lists
_MOST = 200


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A job with quota, for a person who may see it. use: None where it is not known. gpus: whether it has any."""

    name: str
    address: str
    user: str
    cluster: str
    units: int
    since: str
    waits: bool
    gpus: bool
    use: JobUtilization | None


def job_address(job: JobState) -> str:
    """The page of a job."""
    return f"/jobs/{quote(full_name(job), safe='~')}"


def holder_rows(call: ApiCall, jobs: Iterable[QuotaJob]) -> tuple[list[HolderRow], list[HiddenJobs], int]:
    """Jobs that the caller may see, sums of all others, and how many rows a page leaves out."""
    model = call.services.model
    shown, hidden = visible_jobs(jobs, model.visible(call.caller))
    rows = [_row(call, one) for one in shown[:_MOST]]
    return rows, hidden, len(shown) - len(rows)


def _row(call: ApiCall, one: QuotaJob) -> HolderRow:
    job, seen = one.job, one.seen
    if job is None:
        name = seen.name.partition("/")[2]
        return HolderRow(name, "", "", seen.cluster, one.units, "", seen.waits, gpus=any(seen.units), use=None)
    use = utilization_in(call.services.model.profile, job, time.time())
    cluster, gpus = seen.cluster, gpus_of(job) > 0
    return HolderRow(job.name, job_address(job), job.user, cluster, one.units, job.created, seen.waits, gpus, use)


def why_waiting(call: ApiCall, job: JobState) -> dict[str, Any]:
    """Values of the template: the quota of a waiting job, None for any other job. The job is read as the caller."""
    nothing: dict[str, Any] = {"quota": None, "holders": [], "hidden_holders": [], "more_holders": 0}
    if job.state != "WAITING" or job.gone:
        return nothing
    model = call.services.model
    (item,) = directory(call).client.get([Ref(job.kind.full_name, job.label, job.namespace)])
    if item is None:
        return nothing
    try:
        found = quota_of_job(model.profile, model.usage(), item, job, model.counted_jobs())
    except PaiError:
        return nothing  # an object without pods
    rows, hidden, more = holder_rows(call, found.holders)
    return {"quota": found, "holders": rows, "hidden_holders": hidden, "more_holders": more}
