"""`extras` of OpenPAI's job files: what its schedulers and plugins are told. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath
from pai_install.documents.scalars import invalid
from pai_install.documents.validate import did_you_mean, nearest, validate
from pai_install.jobs.fields import (
    Flag,
    Free,
    JobModel,
    MountPath,
    Scripts,
    Text255,
    Whole,
    between,
    matching,
    one_of,
    refused,
)
from pai_install.jobs.model import JobMount
from pai_install.scheduling.model import PRIORITIES, Priority
from pai_install.site.services.section import ListOf

PLUGINS = "com.microsoft.pai.runtimeplugin"
# written by OpenPAI's Python SDK, and read by it alone
_OF_CLIENTS = {"sdk.plugins", "tags"}
_MOST_OTHERS = 20
_NAME_THEM = "name each below extras.storages: - name: STORAGE"


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


FailurePolicy = Annotated[str, one_of("ignore", "fail"), BeforeValidator(_lower)]
# stands in a line of an annotation
CellName = Annotated[str, matching(r"[A-Za-z0-9][-A-Za-z0-9_.]*", 253, "letters, digits, '-', '_' and '.'")]
Names = Annotated[tuple[Text255, ...], ListOf]
Port = Annotated[int, between(1, 65535, "port")]


def _no_other_nodes(value: object) -> object:
    """Refuses ignoreK8sSuggestedNodes: true."""
    if str(value).strip().lower() == "true":
        message = "cannot be true: HiveD would then bind instances to nodes that refuse them"
        raise invalid("unsupported", message, "remove it, or write false")
    return value


class HivedRole(JobModel):
    """extras.hivedScheduler.taskRoles.ROLE."""

    sku_type: Text255 | None = None
    affinity_group_name: CellName | None = None
    sku_num: Whole | None = None
    sku_number: Whole | None = None
    pinned_cell_id: CellName | None = None


class HivedExtras(JobModel):
    """extras.hivedScheduler."""

    job_priority_class: Annotated[Priority, one_of(*PRIORITIES)] | None = None
    task_roles: dict[str, HivedRole] = Field(default_factory=dict)
    gang_release_enable: Flag = False
    lazy_preemption_enable: Flag = False
    ignore_k8s_suggested_nodes: Annotated[Flag, BeforeValidator(_no_other_nodes)] = Field(
        default=False, alias="ignoreK8sSuggestedNodes"
    )


class StorageMount(JobModel):
    """extras.storages[]."""

    name: Text255
    mount_path: MountPath | None = None
    share: Flag | None = None


class PluginUse(JobModel):
    """extras["com.microsoft.pai.runtimeplugin"][]."""

    plugin: Annotated[str, one_of("ssh", "cmd", "teamwise_storage")]
    parameters: Free = None
    failure_policy: FailurePolicy = "fail"
    taskroles: Names | None = None


class Callback(JobModel):
    """callbacks[] of a plugin or prerequisite."""

    event: Annotated[str, one_of("taskStarts", "taskSucceeds")]
    commands: Scripts


class CommandPlugin(JobModel):
    """parameters of the plugin cmd."""

    pre_commands: Scripts | None = None
    post_commands: Scripts | None = None
    callbacks: Annotated[tuple[Callback, ...], ListOf] | None = None


class UserSsh(JobModel):
    """parameters.userssh of the plugin ssh."""

    type: Text255 | None = None
    value: Any = None


class SshPlugin(JobModel):
    """parameters of the plugin ssh."""

    jobssh: Flag = False
    sshbarrier: Flag = False
    sshbarrier_timeout: Whole | None = None
    userssh: UserSsh | None = None


class StoragePlugin(JobModel):
    """parameters of the plugin teamwise_storage."""

    storage_config_names: Names = ()


def _or_flag(value: object) -> bool:
    """gangAllocation: as OpenPAI, only the word false turns it off."""
    word = str(value).strip().lower()
    if isinstance(value, dict | list) or word not in {"true", "false"}:
        raise invalid("boolean", "is neither true nor false", "write true or false")
    return word == "true"


class OurExtras(JobModel):
    """extras["pai-install"]. group: of a user of several groups. web_port, ssh_port: in the first role. notebook: the
    limit for unused notebooks counts.
    """

    group: Text255 | None = None
    web_port: Port | None = Field(default=None, alias="web-port")
    ssh_port: Port | None = Field(default=None, alias="ssh-port")
    notebook: Flag = False


class Extras(JobModel):
    """extras. Clients of OpenPAI keep notes of their own here."""

    @model_validator(mode="before")
    @classmethod
    def leave_out_notes(cls, data: object, info: ValidationInfo) -> object:
        """Leaves out keys that are like no known key, with a warning."""
        if not isinstance(data, dict) or not isinstance(info.context, Document):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        others = [key for key in data if key not in known][:_MOST_OTHERS]
        # A key that is nearly a known one is a typing error. A warning alone would start the job without it.
        notes = {key for key in others if key in _OF_CLIENTS or not nearest(str(key), known)}
        for key in sorted(notes, key=str):
            message = "has no effect, because no part of the cluster reads it"
            info.context.add(("extras", key), "site.no-effect", message, "remove it", severity="warning")
        return {key: value for key, value in data.items() if key not in notes}

    pai_install: OurExtras = Field(default=OurExtras(), alias="pai-install")
    submit_from: Text255 | None = None
    gang_allocation: Annotated[bool, BeforeValidator(_or_flag)] = True
    hived_scheduler: HivedExtras = HivedExtras()
    storages: Annotated[tuple[StorageMount, ...], ListOf] | None = None
    plugins: Annotated[tuple[PluginUse, ...], ListOf] = Field(default=(), alias=PLUGINS)
    tensor_board: Annotated[
        None, refused("is not set up by this version", "remove it, and start tensorboard in a role of its own")
    ] = None
    job_status_change_notification: Annotated[
        None, refused("is not set up by this version", "remove it; `pai-install job show` shows the state of a job")
    ] = None


class Wrapped(NamedTuple):
    """Commands around a role's. before, after: with what is below the path they stand at. strict: a failure counts."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    strict: bool


@dataclass(frozen=True)
class ExtrasReading:
    """The section `extras` of a document's job, whose roles have these numbers of instances."""

    document: Document
    extras: Extras
    roles: dict[str, int]

    def check(self) -> None:
        """Adds what is wrong between extras and the roles."""
        hived = self.extras.hived_scheduler
        for number, (role, options) in enumerate(hived.task_roles.items()):
            path: YamlPath = ("extras", "hivedScheduler", "taskRoles", role)
            if role not in self.roles:
                remedy = did_you_mean(role, self.roles) if number < 20 else ""
                self.document.add(path, "site.unknown-role", "is no role of the job", remedy)
            for key in ("skuNum", "skuNumber"):
                if key in _given(options):
                    message = "has no effect: resourcePerInstance says how much"
                    self.document.add((*path, key), "site.no-effect", message, "remove it", severity="warning")
        self._check_affinity(hived)
        for number, plugin in enumerate(self.extras.plugins):
            for role in set(plugin.taskroles or ()).difference(self.roles):
                path = ("extras", PLUGINS, number, "taskroles")
                self.document.add(path, "site.unknown-role", f"{role} is no role of the job", "")
            if plugin.plugin == "ssh":
                self._check_ssh(("extras", PLUGINS, number, "parameters"), plugin)

    def _check_affinity(self, hived: HivedExtras) -> None:
        """Adds what differs between the roles of a group, which HiveD places together."""
        first: dict[str, HivedRole] = {}
        for role in self.roles:
            options = self.options(role)
            group = options.affinity_group_name or ""
            # Without gangs, instances without a group start apart from each other.
            if not group and not self.extras.gang_allocation:
                continue
            other = first.setdefault(group, options)
            for key, own_value, role_value in (
                ("pinnedCellId", options.pinned_cell_id, other.pinned_cell_id),
                ("skuType", options.sku_type, other.sku_type),
            ):
                if own_value != role_value and (key == "pinnedCellId" or (group and own_value and role_value)):
                    place = role if role in hived.task_roles else next(iter(hived.task_roles))
                    path: YamlPath = ("extras", "hivedScheduler", "taskRoles", place, key)
                    message = (
                        f"differs from {role_value or 'the roles without it'} of a role that starts together with it"
                    )
                    remedy = "write the same, or give the roles different values of affinityGroupName"
                    self.document.add(path, "site.contradiction", message, remedy)

    def options(self, role: str) -> HivedRole:
        """HiveD's options of a role."""
        return self.extras.hived_scheduler.task_roles.get(role, HivedRole())

    def _check_ssh(self, path: YamlPath, plugin: PluginUse) -> None:
        if plugin.parameters is None:
            return
        options = validate(SshPlugin, self.document, below=path)
        if options is None:
            return
        value = options.userssh.value if options.userssh is not None else None
        if value not in (None, ""):
            remedy = "remove userssh. Run `pai-install kubectl exec` to open a shell in a container"
            self.document.add((*path, "userssh"), "site.unsupported", "no one can log in to instances by ssh", remedy)
        if not options.jobssh:
            return
        if sum(self.roles.values()) > 1 or options.sshbarrier:
            remedy = (
                "remove jobssh if instances do not log in to each other. Use PAI_HOST_IP_* to reach the ports of "
                "other instances"
            )
            message = "no ssh is set up between instances by this version"
            self.document.add((*path, "jobssh"), "site.unsupported", message, remedy)
        else:
            message = "has no effect: there is one instance"
            self.document.add((*path, "jobssh"), "site.no-effect", message, "remove it", severity="warning")

    def mounts(self) -> Iterator[tuple[JobMount, YamlPath]]:
        """Storages, and where the file says so; adds what is wrong with them."""
        storages = [(number, one) for number, one in enumerate(self.extras.plugins) if one.plugin == "teamwise_storage"]
        if self.extras.storages is not None:
            for number, _ in storages:
                message = "extras.storages says which already"
                self.document.add(("extras", PLUGINS, number), "site.contradiction", message, "remove one of them")
            if not self.extras.storages:
                message = (
                    "OpenPAI mounted all storages of the user's groups, but pai-install mounts only those of the job"
                )
                self.document.add(("extras", "storages"), "site.unsupported", message, _NAME_THEM)
        seen: dict[str, str] = {}
        for name, folder, path in self._named(storages):
            # OpenPAI's default.
            where = folder or f"/mnt/{name}"
            if where in seen:
                message = f"{where} is where {seen[where]} is mounted"
                self.document.add(path, "site.twice", message, "give it another mountPath")
            seen.setdefault(where, name)
            yield JobMount(name, where), path

    def _named(self, named: list[tuple[int, PluginUse]]) -> Iterator[tuple[str, str | None, YamlPath]]:
        for number, one in enumerate(self.extras.storages or ()):
            yield one.name, one.mount_path, ("extras", "storages", number, "name")
        for number, plugin in named if self.extras.storages is None else ():
            path: YamlPath = ("extras", PLUGINS, number)
            below: YamlPath = (*path, "parameters")
            options = validate(StoragePlugin, self.document, below=below) if plugin.parameters is not None else None
            if plugin.parameters is None or (options is not None and not options.storage_config_names):
                message = (
                    "OpenPAI mounted all storages of the user's groups, but pai-install mounts only those of the job"
                )
                self.document.add(path, "site.unsupported", message, _NAME_THEM)
            for place, name in enumerate(options.storage_config_names if options is not None else ()):
                yield name, None, (*below, "storageConfigNames", place)

    def commands(self) -> Iterator[tuple[tuple[str, ...] | None, Wrapped]]:
        """Of the plugin cmd: the roles that have it (None: all), and what it runs around theirs."""
        for number, plugin in enumerate(self.extras.plugins):
            if plugin.plugin != "cmd" or plugin.parameters is None:
                continue
            path: YamlPath = ("extras", PLUGINS, number, "parameters")
            options = validate(CommandPlugin, self.document, below=path)
            if options is None:
                continue
            if options.callbacks is not None and (options.pre_commands or options.post_commands):
                message = "callbacks say it already"
                self.document.add(path, "site.contradiction", message, "remove preCommands and postCommands")
            yield (
                plugin.taskroles,
                Wrapped(
                    (*(options.pre_commands or ()), *called(options.callbacks or (), "taskStarts")),
                    (*(options.post_commands or ()), *called(options.callbacks or (), "taskSucceeds")),
                    plugin.failure_policy == "fail",
                ),
            )

    def places(self) -> dict[str, YamlPath]:
        """Of what a site is asked about."""
        hived: YamlPath = ("extras", "hivedScheduler")
        found: dict[str, YamlPath] = {"priority": (*hived, "jobPriorityClass")}
        found["lazy"] = (*hived, "lazyPreemptionEnable")
        found["release"] = (*hived, "gangReleaseEnable")
        for role in self.extras.hived_scheduler.task_roles:
            found[f"sku:{role}"] = (*hived, "taskRoles", role, "skuType")
            found[f"pin:{role}"] = (*hived, "taskRoles", role, "pinnedCellId")
            found[f"affinity:{role}"] = (*hived, "taskRoles", role, "affinityGroupName")
        return found


def called(callbacks: tuple[Callback, ...], event: str) -> tuple[str, ...]:
    """Commands of an event."""
    return tuple(command for one in callbacks if one.event == event for command in one.commands)


def _given(model: JobModel) -> frozenset[str]:
    fields = type(model).model_fields
    return frozenset(fields[name].alias or name for name in model.model_fields_set)
