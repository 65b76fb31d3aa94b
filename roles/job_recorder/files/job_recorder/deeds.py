"""Does what is to be done about jobs that have their GPUs for nothing: tells, stops, lowers a priority."""

from __future__ import annotations

import http
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from job_recorder.cluster import Cluster, ClusterError
from job_recorder.idle import WARNED, Deed, Job, Lower, Stop, Tell
from job_recorder.shapes import STOPPED_BY, STOPPED_WHY, child, meta, rows, text

MERGE = "application/merge-patch+json"
# who stops a job then; the policy of the API server lets the recorder delete no other
ME = "pai-install"
_KUEUE, _JOB_UID = "kueue.x-k8s.io", "kueue.x-k8s.io/job-uid"
# of OpenPAI's oppo: any other job may have what such a job has
LOWEST = -1


@dataclass(frozen=True)
class Doer:
    """complain: takes a line for the journal."""

    cluster: Cluster
    complain: Callable[[str], None]

    def do(self, deed: Deed) -> None:
        """What cannot be done is said, and is due again."""
        try:
            if isinstance(deed, Tell):
                self._note(deed.job, {WARNED: deed.note})
            elif isinstance(deed, Stop):
                self._note(deed.job, {STOPPED_BY: ME, STOPPED_WHY: deed.why})
                options = {"propagationPolicy": "Background", "preconditions": {"uid": deed.job.uid}}
                self.cluster.delete(_path(deed.job), options)
                self.complain(f"{deed.job.namespace}/{deed.job.name}: stopped: {deed.why}")
            elif isinstance(deed, Lower):
                self._lower(deed.job)
                self._note(deed.job, {WARNED: deed.note})
                self.complain(f"{deed.job.namespace}/{deed.job.name}: is preemptible now")
        except ClusterError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                self.complain(str(error))

    def _note(self, job: Job, notes: Mapping[str, Any]) -> None:
        # by its UID: the next job may have the same name
        body = {"metadata": {"uid": job.uid, "annotations": dict(notes)}}
        self.cluster.json("PATCH", _path(job), body, MERGE)

    def _lower(self, job: Job) -> None:
        """The priority of what Kueue made of the job. That of its pods says nothing to Kueue, and stays."""
        version = text(child(self.cluster.json("GET", f"/apis/{_KUEUE}"), "preferredVersion").get("groupVersion"))
        path = f"/apis/{version}/namespaces/{quote(job.namespace)}/workloads"
        found = rows(
            self.cluster.json("GET", f"{path}?{urlencode({'labelSelector': f'{_JOB_UID}={job.uid}'})}").get("items")
        )
        if not found:
            raise ClusterError(f"{job.namespace}/{job.name}: Kueue has no workload of it")
        for workload in found:
            self.cluster.json("PATCH", f"{path}/{quote(meta(workload, 'name'))}", {"spec": {"priority": LOWEST}}, MERGE)


def _path(job: Job) -> str:
    root = f"/apis/{job.version}" if "/" in job.version else f"/api/{job.version}"
    return f"{root}/namespaces/{quote(job.namespace)}/{job.resource.rpartition('/')[2]}/{quote(job.name)}"
