"""OpenPAI's job protocol 2 as models: what its file may say."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from pai_install.jobs.fields import (
    Cores,
    Ending,
    Flag,
    Free,
    Gpus,
    Instances,
    JobModel,
    Megabytes,
    PortCount,
    Retries,
    Scripts,
    Text255,
    matching,
    one_of,
)
from pai_install.jobs.openpai_extras import Callback, Extras, FailurePolicy, Names
from pai_install.site.services.section import ListOf

_ROLE = r"[a-zA-Z_][a-zA-Z0-9_]*"
Version = Annotated[str, one_of("2")]
Name = Annotated[str, matching(r"[a-zA-Z0-9_-]+", 255, "letters, digits, '-' and '_'")]
RoleName = Annotated[str, matching(_ROLE, 63, "letters, digits and '_'; no digit first")]
Label = Annotated[str, matching(_ROLE, 40, "letters, digits and '_'; no digit first")]


class V2Auth(JobModel):
    """prerequisites[].auth. Any text may be a reference to a secret."""

    username: Any = Field(default=None, repr=False)
    password: Any = Field(default=None, repr=False)
    registryuri: Any = None


class V2Prerequisite(JobModel):
    """prerequisites[]: an image, or something that roles refer to."""

    protocol_version: Version | None = None
    type: Annotated[str, one_of("dockerimage", "script", "data", "output")]
    name: Name
    version: Text255 | None = None
    contributor: Text255 | None = None
    description: Any = None
    uri: Any = None
    auth: V2Auth | None = None
    plugin: Annotated[str, one_of("com.microsoft.pai.runtimeplugin.cmd")] | None = None
    require: Names = ()
    failure_policy: FailurePolicy = "fail"
    callbacks: Annotated[tuple[Callback, ...], ListOf] | None = None


class V2Resources(JobModel):
    """taskRoles.ROLE.resourcePerInstance."""

    cpu: Cores
    memory_mb: Megabytes
    gpu: Gpus
    ports: dict[Label, PortCount] = Field(default_factory=dict)


class V2Completion(JobModel):
    """taskRoles.ROLE.completion."""

    min_failed_instances: Ending | None = None
    min_succeeded_instances: Ending | None = None


class V2Container(JobModel):
    """taskRoles.ROLE.extraContainerOptions."""

    shm_mb: Megabytes | None = None
    infiniband: Flag = False


class V2Role(JobModel):
    """taskRoles.ROLE."""

    protocol_version: Version | None = None
    instances: Instances = 1
    completion: V2Completion = V2Completion()
    task_retry_count: Retries = 0
    prerequisites: Names = ()
    docker_image: Text255
    data: Text255 | None = None
    output: Text255 | None = None
    script: Text255 | None = None
    extra_container_options: V2Container = V2Container()
    resource_per_instance: V2Resources
    commands: Scripts


class V2Around(JobModel):
    """deployments[].taskRoles.ROLE."""

    pre_commands: Scripts = ()
    post_commands: Scripts = ()


class V2Deployment(JobModel):
    """deployments[]."""

    protocol_version: Version | None = None
    name: Name
    version: Text255 | None = None
    contributor: Text255 | None = None
    description: Any = None
    task_roles: dict[str, V2Around]


class V2Defaults(JobModel):
    """defaults."""

    virtual_cluster: Text255 | None = None
    deployment: Text255 | None = None


class V2File(JobModel):
    """The whole file."""

    protocol_version: Version
    name: Name
    type: Annotated[str, one_of("job")]
    version: Text255 | None = None
    contributor: Text255 | None = None
    description: Any = None
    prerequisites: Annotated[tuple[V2Prerequisite, ...], ListOf] = ()
    parameters: Free = None
    secrets: Free = Field(default=None, repr=False)
    job_retry_count: Retries = 0
    task_roles: dict[RoleName, V2Role]
    deployments: Annotated[tuple[V2Deployment, ...], ListOf] = ()
    defaults: V2Defaults = V2Defaults()
    extras: Extras = Extras()
