"""A submission that was cut between a job and its companions, as by a lost machine. The next one completes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pai_install.app.job_manifest import JobManifest, JobSubmission
from pai_install.cluster.client import ApiError, ClusterClient
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text


def complete_jobs(client: ClusterClient, submission: JobSubmission) -> bool:
    """Creates missing companions of jobs of the same file. False for whole jobs, and other jobs with these names.

    Members read no Secrets. So one that exists is replaced, because it may be another user's: a policy protects that.
    """
    found = client.get([Ref(one.kind.full_name, one.label, one.place.owner.namespace) for one in submission.jobs])
    jobs = [item for item in found if item is not None]
    if len(jobs) < len(found) or not all(map(_is_of, jobs, submission.jobs)):
        return False
    items = [owned(one, jobs) for one in submission.companions]
    known = [item for item in items if not _is_created(client, item)]
    if len(known) == len(items):
        return False
    for item in known:
        metadata = item["metadata"]
        client.delete([Ref(item["kind"].lower(), metadata["name"], metadata["namespace"])])
        client.create([item])
    return True


def owned(item: dict[str, Any], jobs: Sequence[JsonObject]) -> dict[str, Any]:
    """The object with the jobs as its owners."""
    owners = [
        {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            "name": child(job, "metadata")["name"],
            "uid": text(child(job, "metadata").get("uid")),
        }
        for job in jobs
    ]
    return {**item, "metadata": {**item["metadata"], "ownerReferences": owners}}


def _is_of(found: JsonObject, job: JobManifest) -> bool:
    """Whether an object comes from the same file of the same user."""
    made, there = child(job.item, "metadata"), child(found, "metadata")
    return all(
        child(there, kind).get(key) == value
        for kind in ("labels", "annotations")
        for key, value in child(made, kind).items()
    )


def _is_created(client: ClusterClient, item: JsonObject) -> bool:
    """Creates an object. False for one that exists."""
    try:
        client.create([item])
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        return False
    return True
