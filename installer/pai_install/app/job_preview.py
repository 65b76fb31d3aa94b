"""Use case: what will happen to a job file: its problems, the answer of the cluster's policies, and of its quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pai_install.app.cluster_context import ClusterContext
from pai_install.app.job_manifest import JobManifest, JobSubmission
from pai_install.app.job_quota import QuotaJob
from pai_install.app.job_submission import RejectedJob, compile_unchecked, require_permitted
from pai_install.app.requested_job import JobOptions
from pai_install.app.virtual_clusters import simulate_in
from pai_install.documents.problem import Problem
from pai_install.errors import PaiError
from pai_install.jobs.read import JobReading
from pai_install.jobs.state import JobState
from pai_install.schedulers.job_check import check_job
from pai_install.schedulers.simulation import Simulation
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.job_request import JobRequest, JobRequestError, job_request_of


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """The answer of the quotas for one job of a file. holders: running jobs with the same quota."""

    name: str
    simulation: Simulation
    holders: tuple[QuotaJob, ...]


@dataclass(frozen=True, slots=True)
class JobPreview:
    """What will happen. problems: of the file. refused: why it cannot be submitted, "" if it can."""

    problems: tuple[Problem, ...]
    refused: str
    answers: tuple[JobAnswer, ...]

    @property
    def ok(self) -> bool:
        """Whether a submission would succeed now."""
        return not self.refused and not any(problem.is_error for problem in self.problems)


def preview_job(
    app: ClusterContext, options: JobOptions, reading: JobReading, usage: Usage, states: Mapping[str, JobState]
) -> JobPreview:
    """Checks a file, asks the API server by a dry run, and simulates its jobs. Changes nothing.

    states: of `states_of_seen`, to name the holders of a quota.
    """
    options = options.model_copy(update={"user": options.user or app.user})
    checked = check_job(reading, app.profile, options.group)
    if checked.job is None:
        return JobPreview(checked.problems, "", ())
    try:
        submission, _ = compile_unchecked(app.profile, options, reading)
        require_permitted(app.cluster, submission, app.submitter(options.user))
    except RejectedJob as error:
        return JobPreview((*checked.problems, error.problem), "", ())
    except PaiError as error:
        words = filter(None, (error.message, error.details, error.remedy))
        return JobPreview(checked.problems, "\n".join(words), ())
    return JobPreview(checked.problems, "", tuple(_answers(app, submission, usage, states)))


def _answers(
    app: ClusterContext, submission: JobSubmission, usage: Usage, states: Mapping[str, JobState]
) -> Iterator[JobAnswer]:
    for one in submission.jobs:
        try:
            simulation = simulate_in(app.profile, usage, _request(one))
        except JobRequestError:
            continue  # an object without pods
        holders = tuple(QuotaJob(seen, states.get(seen.name)) for seen in simulation.holders)
        yield JobAnswer(one.name, simulation, holders)


def _request(one: JobManifest) -> JobRequest:
    request = job_request_of(one.item)
    queue = replace(request.queue, cluster=one.place.cluster.name, priority=one.place.priority)
    return replace(request, namespace=one.place.owner.namespace, queue=queue)
