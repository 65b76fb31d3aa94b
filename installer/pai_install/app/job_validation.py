"""The use case of `job validate`: the files by themselves, with the site, and by a dry run of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App
from pai_install.app.job_submission import RejectedJob, compile_reading, require_permitted
from pai_install.app.requested_job import JobOptions
from pai_install.cluster.client import ApiError, NoClusterError
from pai_install.documents.document import Document
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.read import JobReading, read_job
from pai_install.schedulers.job_check import check_hdfs, check_job
from pai_install.site.load import LAYOUT
from pai_install.system.parameters import Parameter


class ValidateJobs(BaseModel):
    """Job files to validate."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    files: Annotated[tuple[Path, ...], Parameter(positional=True, metavar="FILE...")]
    group: Annotated[str | None, Parameter(metavar="NAME")] = Field(
        default=None,
        description="Submitting group, with its virtual clusters, storages, and namespace.",
    )
    offline: bool = Field(default=False, description="Do not contact the cluster.")


def validate_jobs(app: App, request: ValidateJobs) -> tuple[JobReading, ...]:
    """The jobs in the files, with their problems. A folder without layout.yaml is no site: only the files count.

    With a group, a cluster that responds checks the valid files by a dry run.
    """
    readings = tuple(map(read_job, request.files))
    if request.group is None and not (app.site_dir / LAYOUT).exists():
        app.notify(f"{app.site_dir} has no {LAYOUT}: the files are checked without a site")
        return tuple(check_hdfs(one, None, None) for one in readings)
    if request.group is not None:
        app.profile.require_group(request.group)
    checked = tuple(check_job(one, app.profile, request.group) for one in readings)
    if request.group is None or request.offline or not app.state.known_hosts.exists():  # no machine was reached yet
        return checked
    try:
        return tuple(_judged(app, one, request.group) for one in checked)
    except (NoClusterError, ApiError) as error:
        app.notify(f"cannot ask the cluster: {error.message}. The files are checked without it")
        return checked


def _judged(app: App, reading: JobReading, group: str) -> JobReading:
    """The reading with the API server's rejection, if any. Raises NoClusterError, and ApiError for no answer."""
    if reading.job is None:
        return reading
    request = JobOptions(group=group, user=app.user)
    try:
        require_permitted(app.cluster, compile_reading(app.profile, request, reading), app.submitter(app.user))
    except RejectedJob as error:
        return reading.with_problems((error.problem,))
    except (NoClusterError, ApiError):
        raise
    except PaiError as error:
        if error.exit_code is not ExitCode.SITE_INVALID:
            return reading  # such as a namespace that does not exist yet
        document = Document(reading.file, of="job")
        document.add((), "site.rejected", error.message, error.remedy)
        return reading.with_problems(tuple(document.problems))
    return reading
