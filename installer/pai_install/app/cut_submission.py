"""Submissions that lose an API server, or the whole console, between the creations of their objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pai_install.app.job_manifest import JobManifest, JobSubmission
from pai_install.cluster.client import ApiError, ClusterClient
from pai_install.cluster.retries import SOON_S, answered, is_unanswered
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text


def complete_jobs(client: ClusterClient, submission: JobSubmission) -> bool:
    """Creates missing companions of jobs of the same file. False for whole jobs, and other jobs with these names.

    Members read no Secrets. So one that exists is replaced, because it may be another user's: a policy protects that.
    """
    found = client.get([one.ref for one in submission.jobs])
    jobs = [item for item in found if item is not None]
    if len(jobs) < len(found) or not all(map(_is_of, jobs, submission.jobs)):
        return False
    items = [owned(one, jobs) for one in submission.companions]
    known = [item for item in items if not _is_created(client, item)]
    if len(known) == len(items):
        return False
    for item in known:
        _replaced(client, item)
    return True


def create_job(client: ClusterClient, job: JobManifest) -> JsonObject:
    """Creates the object of a job, and repeats a request without an answer. The job must not exist before."""
    return _created(client, job.item, lambda: _made_before(client, job))


def create_companion(client: ClusterClient, item: JsonObject) -> JsonObject:
    """Creates an object beside a job, and repeats a request without an answer."""
    return _created(client, item, lambda: _replaced(client, item))


def _created(client: ClusterClient, item: JsonObject, existing: Callable[[], JsonObject | None]) -> JsonObject:
    """existing: the object that a request without an answer made, None for another one of this name."""
    lost = False

    def request() -> JsonObject:
        nonlocal lost
        try:
            return client.create([item])[0]
        except ApiError as error:
            if lost and error.reason == "AlreadyExists" and (found := existing()) is not None:
                return found
            lost = lost or is_unanswered(error)
            raise

    return answered(request, SOON_S)


def _made_before(client: ClusterClient, job: JobManifest) -> JsonObject | None:
    (found,) = client.get([job.ref])
    return found if found is not None and _is_of(found, job) else None


def _replaced(client: ClusterClient, item: JsonObject) -> JsonObject:
    metadata = item["metadata"]
    client.delete([Ref(item["kind"].lower(), metadata["name"], metadata["namespace"])])
    return client.create([item])[0]


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
