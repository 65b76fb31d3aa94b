"""A job in OpenPAI's protocol 1, as versions before 1.0 took it -> a Job. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from pai_install.documents.document import Document, Entries, Items
from pai_install.documents.problem import YamlPath
from pai_install.documents.scalars import invalid
from pai_install.documents.validate import validate
from pai_install.jobs.fields import (
    Cores,
    Gpus,
    Image,
    Instances,
    JobModel,
    Megabytes,
    PortCount,
    Script,
    Text255,
    Variables,
    between,
    matching,
    refused,
)
from pai_install.jobs.hdfs import CODE, DATA, OUTPUT, is_hdfs, placeholders, read_hdfs_folder
from pai_install.jobs.model import Job, JobPort, Resources, Role
from pai_install.jobs.openpai_extras import Extras, ExtrasReading, HivedRole
from pai_install.jobs.references import SHORTEN, TOO_LONG, CommandRoom
from pai_install.jobs.rules import (
    check_endings,
    check_names,
    check_roles,
    check_variables,
    failed_ending,
    succeeded_ending,
)
from pai_install.jobs.script import script
from pai_install.site.services.section import ListOf

# what OpenPAI's web page calls the only role
ONLY_ROLE = "taskrole"
HdfsFolder = Annotated[str, BeforeValidator(read_hdfs_folder)]


def _code_folder(value: object, info: ValidationInfo) -> str | None:
    """The folder of HDFS. Another place is a warning, because the image or a storage may have the code."""
    if is_hdfs(value):
        folder = read_hdfs_folder(value)
        if folder == "/":
            raise invalid("hdfs", "names no folder of HDFS", "write hdfs://HOST:PORT/FOLDER")
        return folder
    if isinstance(info.context, Document):
        folder = f"/root/{PurePosixPath(str(value)).name}"
        message = f"has no effect, because it is not on HDFS: nothing is copied to {folder}"
        remedy = "remove the line, and let the image, a storage, or the command provide the code"
        info.context.add((CODE,), "site.no-effect", message, remedy, severity="warning")
    return None


class V1Port(JobModel):
    """taskRoles[].portList[]."""

    label: Annotated[str, matching(r"[A-Za-z0-9_]+", 40, "letters, digits and '_'")]
    begin_at: Annotated[int, between(0, 65535, "port")] = 0
    port_number: PortCount = 1


class V1Role(JobModel):
    """taskRoles[]."""

    @model_validator(mode="before")
    @classmethod
    def has_name(cls, data: object, info: ValidationInfo) -> object:
        """Names the only role of a job that has no name."""
        if not isinstance(data, dict) or data.get("name") not in (None, ""):
            return data
        document, path = info.context, getattr(data, "path", ())
        if not isinstance(document, Document) or len(_roles(document)) != 1:
            return data
        message = f"has no name, and is called {ONLY_ROLE}"
        document.add(path, "site.missing", message, f'add "name": "{ONLY_ROLE}"', severity="warning")
        named = Entries({**data, "name": ONLY_ROLE})
        # A new mapping has no place in the file, and later problems need one.
        named.path, named.mark = path, document.mark(path)
        return named

    name: Annotated[str, matching(r"[A-Za-z0-9_]+", 63, "letters, digits and '_': names of variables are made of it")]
    task_number: Instances = 1
    cpu_number: Cores = 1
    memory_mb: Annotated[Megabytes, between(100, 2**30, "amount of memory in MB")] = 100
    shm_mb: Megabytes | None = None
    gpu_number: Gpus = 0
    port_list: Annotated[tuple[V1Port, ...], ListOf] = ()
    command: Script
    min_failed_task_count: Instances | None = 1
    min_succeeded_task_count: Instances | None = None


class V1File(JobModel):
    """The whole file."""

    job_name: Annotated[str, matching(r"[A-Za-z0-9._~-]+", 255, "letters, digits, '-', '_', '.' and '~'")]
    image: Image
    virtual_cluster: Text255 | None = None
    gpu_type: Text255 | None = None
    retry_count: Annotated[int, between(-1, 1000, "number of retries; -1 is without end")] = 0
    job_envs: Variables = Field(default_factory=dict)
    extras: Extras = Extras()
    task_roles: Annotated[tuple[V1Role, ...], ListOf]
    auth_file: Annotated[
        None,
        refused(
            "there is no HDFS here, where it would be",
            "remove it, and have the login added to the section registry of the site, or write the job in protocol 2 "
            "with prerequisites[].auth",
        ),
    ] = None
    data_dir: HdfsFolder | None = None
    output_dir: HdfsFolder | None = None
    code_dir: Annotated[str | None, BeforeValidator(_code_folder)] = None
    kill_all_on_completed_task_number: Annotated[
        None, refused("is not read", 'remove it, and give the role "minSucceededTaskCount"')
    ] = None

    @property
    def hdfs(self) -> dict[str, str]:
        """Key -> folder of HDFS."""
        folders = {CODE: self.code_dir, DATA: self.data_dir, OUTPUT: self.output_dir}
        return {key: folder for key, folder in folders.items() if folder is not None}


def read_v1(document: Document, places: dict[str, YamlPath]) -> Job | None:
    """The job, and in `places` where its parts are said; None where problems were added that leave none."""
    file = validate(V1File, document)
    if file is None:
        return None
    if not file.task_roles:
        document.add(("taskRoles",), "site.missing", "is empty", "describe each role of the job in it")
        return None
    extras = ExtrasReading(document, file.extras, {role.name: role.task_number for role in file.task_roles})
    extras.check()
    commands, room = list(extras.commands()), CommandRoom()
    roles = []
    for number, role in enumerate(file.task_roles):
        path: YamlPath = ("taskRoles", number)
        around = [one for names, one in commands if names is None or role.name in names]
        _check_role(document, path, role, {other.name for other in file.task_roles[:number]})
        places |= {f"role:{role.name}": path, f"resources:{role.name}": path, f"sku:{role.name}": ("gpuType",)}
        if room.left >= 0 and not room.take(sum(len(line) for one in around for line in (*one.before, *one.after))):
            document.add((*path, "command"), "site.reference", TOO_LONG, SHORTEN)
        words = script([role.command], around if room.left >= 0 else [])
        roles.append(_role(file, role, words, extras.options(role.name)))
    mounts = list(extras.mounts())
    places |= {**extras.places(), "virtual-cluster": ("virtualCluster",)}
    places |= {f"mount:{mount.storage}": path for mount, path in mounts}
    places |= {f"hdfs:{key}": (key,) for key in file.hdfs}
    named: dict[str, YamlPath] = {role.name: ("taskRoles", n, "name") for n, role in enumerate(file.task_roles)}
    check_names(document, ("jobName",), file.job_name, named)
    check_roles(document, ("jobName",), file.job_name, roles)
    if any(problem.is_error for problem in document.problems):
        return None
    job = Job(
        name=file.job_name,
        roles=tuple(roles),
        virtual_cluster=file.virtual_cluster,
        priority=file.extras.hived_scheduler.job_priority_class,
        retries=None if file.retry_count == -1 else file.retry_count,
        gang=file.extras.gang_allocation,
        lazy_preemption=file.extras.hived_scheduler.lazy_preemption_enable,
        gang_release=file.extras.hived_scheduler.gang_release_enable,
        mounts=tuple(mount for mount, _ in mounts),
        hdfs=file.hdfs,
    )
    check_variables(document, job, {role.name: ("taskRoles", n, "command") for n, role in enumerate(file.task_roles)})
    return job


def _roles(document: Document) -> list[object]:
    found = document.content.get("taskRoles")
    return found if isinstance(found, Items) else []


def _check_role(document: Document, path: YamlPath, role: V1Role, before: set[str]) -> None:
    if role.name in before:
        document.add((*path, "name"), "site.twice", f"{role.name} is the name of another role", "give it another name")
    if role.shm_mb is not None and role.shm_mb > role.memory_mb:
        message = f"{role.shm_mb} is more than memoryMB, which it is a part of"
        document.add((*path, "shmMB"), "site.contradiction", message, f"write {role.memory_mb} at most")
    endings = {
        "minFailedTaskCount": role.min_failed_task_count,
        "minSucceededTaskCount": role.min_succeeded_task_count,
    }
    check_endings(document, path, role.task_number, **endings)
    seen: set[str] = set()
    for number, port in enumerate(role.port_list):
        below: YamlPath = (*path, "portList", number)
        if port.label in seen:
            document.add((*below, "label"), "site.twice", f"{port.label} is another port's", "give it another label")
        seen.add(port.label)
        if port.begin_at + port.port_number - 1 > 65535:
            message = f"{port.port_number} ports from {port.begin_at} on go beyond 65535"
            document.add((*below, "beginAt"), "site.port", message, "write 0 for any that are free")


def _role(file: V1File, role: V1Role, command: str, hived: HivedRole) -> Role:
    return Role(
        name=role.name,
        instances=role.task_number,
        image=file.image,
        command=command,
        resources=Resources(
            cpu=role.cpu_number,
            memory_mb=role.memory_mb,
            gpus=role.gpu_number,
            # 64 MiB is Docker's own default, which protocol 1 had.
            shm_mb=role.shm_mb or 64,
            sku=hived.sku_type or (file.gpu_type if role.gpu_number else None),
        ),
        ports=tuple(JobPort(port.label, port.port_number, port.begin_at or None) for port in role.port_list),
        min_failed=failed_ending(role.min_failed_task_count, role.task_number),
        min_succeeded=succeeded_ending(role.min_succeeded_task_count, role.task_number),
        environment={**file.job_envs, **placeholders(file.hdfs)},
        pinned_cell=hived.pinned_cell_id or "",
        affinity_group=hived.affinity_group_name or "",
    )
