"""Requests for jobs that do not use their GPUs: warn them, stop them, lower their priority."""

from __future__ import annotations

import http
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from pai_install.agents.common.api import MERGE, ApiError, Client, object_path
from pai_install.agents.common.values import child, meta, rows, text
from pai_install.agents.job_recorder.idle import WARNED, Action, Job, Lower, Stop, Warn
from pai_install.agents.job_recorder.objects import STOPPED_BY, STOPPED_WHY

# who stops a job then; the policy of the API server lets the recorder delete no other
ME = "pai-install"
_KUEUE, _JOB_UID = "kueue.x-k8s.io", "kueue.x-k8s.io/job-uid"
# of OpenPAI's oppo: any other job may have what such a job has
LOWEST = -1


@dataclass(frozen=True)
class Actor:
    """warn: takes a line for the log."""

    client: Client
    warn: Callable[[str], None]

    def run(self, action: Action) -> None:
        """Runs the action. A failed request is logged, and its action is due again."""
        try:
            if isinstance(action, Warn):
                self._note(action.job, {WARNED: action.note})
            elif isinstance(action, Stop):
                # The reason comes first: the record takes it from the last state of the job.
                self._note(action.job, {STOPPED_BY: ME, STOPPED_WHY: action.why})
                # Foreground deletion would keep the object, and its name, until the last pod has ended.
                options = {"propagationPolicy": "Background", "preconditions": {"uid": action.job.uid}}
                self.client.delete(_path(action.job), options)
                self.warn(f"{action.job.namespace}/{action.job.name}: stopped: {action.why}")
            elif isinstance(action, Lower):
                self._lower(action.job)
                self._note(action.job, {WARNED: action.note})
                self.warn(f"{action.job.namespace}/{action.job.name}: is preemptible now")
        except ApiError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                self.warn(str(error))

    def _note(self, job: Job, notes: Mapping[str, Any]) -> None:
        # by its UID: the next job may have the same name
        body = {"metadata": {"uid": job.uid, "annotations": dict(notes)}}
        self.client.json("PATCH", _path(job), body, MERGE)

    def _lower(self, job: Job) -> None:
        """Lowers the priority of the job's Kueue workload. Kueue ignores the priority of its pods, which stays."""
        version = text(child(self.client.json("GET", f"/apis/{_KUEUE}"), "preferredVersion").get("groupVersion"))
        path = object_path(version, "workloads", job.namespace)
        found = rows(
            self.client.json("GET", f"{path}?{urlencode({'labelSelector': f'{_JOB_UID}={job.uid}'})}").get("items")
        )
        if not found:
            raise ApiError(f"{job.namespace}/{job.name}: Kueue has no workload of it")
        for workload in found:
            self.client.json(
                "PATCH", f"{path}/{quote(meta(workload, 'name'), safe='')}", {"spec": {"priority": LOWEST}}, MERGE
            )


def _path(job: Job) -> str:
    return object_path(job.version, job.resource.rpartition("/")[2], job.namespace, job.name)
