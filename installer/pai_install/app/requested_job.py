"""The job of `job submit`: a file or a template, with other values and with code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, DirectoryPath, Field, FilePath

from pai_install.app.cluster_context import ClusterContext
from pai_install.errors import ExitCode, PaiError, argument_error
from pai_install.jobs.code import CodeArchive, StoredCode
from pai_install.jobs.kubernetes import KubernetesFile
from pai_install.jobs.masking import has_mask
from pai_install.jobs.read import JobReading, read_job, read_job_text
from pai_install.jobs.template import JobTemplate
from pai_install.scheduling.model import Priority
from pai_install.system.parameters import Parameter


class JobOptions(BaseModel):
    """The owner and the queue of a job."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    group: Annotated[str, Parameter(metavar="GROUP")] = Field(
        description="Group of the job. The job runs in the group's namespace."
    )
    user: Annotated[str, Parameter(metavar="USER", default="the user of this host")] = Field(
        default="", description="Owner of the job."
    )
    cluster: Annotated[str | None, Parameter("--vc", "NAME")] = Field(
        default=None, description="Virtual cluster. Overrides the file."
    )
    priority: Priority | None = Field(default=None, description="Priority. Overrides the file.")


class SubmitJob(JobOptions):
    """A job's file or template, its owner, and its queue."""

    file: Annotated[FilePath | None, Parameter(positional=True, metavar="[FILE]")] = None
    template: Annotated[str, Parameter(metavar="NAME")] = Field(
        default="", description="Template of the group or published template, instead of FILE."
    )
    settings: Annotated[tuple[str, ...], Parameter("--set", "KEY=VALUE")] = Field(
        default=(), description="Value of a parameter of the file. Repeat the option for several."
    )
    name: Annotated[str, Parameter(metavar="NAME", default="the file's")] = Field(
        default="", description="Name of the job."
    )
    code: Annotated[DirectoryPath | None, Parameter(metavar="DIR")] = Field(
        default=None, description="Folder with code for the work folder of each instance."
    )
    watch: bool = Field(default=False, description="Wait for the end of the job, and print its changes.")


def requested_reading(app: ClusterContext, request: SubmitJob) -> JobReading:
    """The file of a request, with the requested values. Raises PaiError."""
    # of a file without values neither is needed
    from pai_install.app.changed_file import changed_file, read_settings  # noqa: PLC0415
    from pai_install.app.job_templates import find_template  # noqa: PLC0415

    if request.file is not None and not request.template:
        reading = read_job(request.file)
    elif request.file is None and request.template:
        found = find_template(app, request.template, (request.group,))
        require_secrets(found)
        reading = read_job_text(found.content, Path(found.name))
    else:
        raise argument_error("cannot submit a job: name a FILE or --template", "name one of the two")
    return changed_file(reading, read_settings(request.settings), request.name)


def require_secrets(template: JobTemplate) -> None:
    """Raises PaiError for a template with secrets: the cluster keeps none, and ****** would be the secret."""
    if has_mask(template.content):
        raise PaiError(
            f"cannot submit a job of {template.name}: the template has no secrets",
            code="template-without-secrets",
            remedy="write its file with job template show, and write the secrets in place of ******",
            exit_code=ExitCode.USAGE,
        )


def with_code(reading: JobReading, code: CodeArchive | StoredCode | None) -> JobReading:
    """The reading of a job with code, if there is some. Raises PaiError for code with objects of Kubernetes."""
    if code is None:
        return reading
    if isinstance(reading.job, KubernetesFile):
        raise PaiError(
            f"cannot add code to {reading.file}: it has objects of Kubernetes",
            code="code-not-supported",
            remedy="write a ConfigMap into the file, and mount it",
            exit_code=ExitCode.USAGE,
        )
    return reading if reading.job is None else replace(reading, job=replace(reading.job, code=code))
