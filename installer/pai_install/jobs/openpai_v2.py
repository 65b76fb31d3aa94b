"""A job in OpenPAI's protocol 2 -> a Job. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pai_install.documents.document import Document, Items, Text
from pai_install.documents.problem import YamlPath, short
from pai_install.documents.scalars import MAX_COUNT
from pai_install.documents.validate import did_you_mean, validate
from pai_install.jobs.fields import read_image
from pai_install.jobs.model import Job, JobPort, PullLogin, Resources, Role
from pai_install.jobs.openpai_extras import ExtrasReading, Wrapped, called
from pai_install.jobs.openpai_v2_file import V2Auth, V2File, V2Prerequisite, V2Role
from pai_install.jobs.references import SECRETS, CommandRoom, References
from pai_install.jobs.rules import (
    check_endings,
    check_names,
    check_roles,
    check_variables,
    failed_ending,
    succeeded_ending,
)
from pai_install.jobs.script import script

# in OpenPAI a role refers to one prerequisite of each of these types by a key of that name
_REFERRED = ("data", "output", "script")
_SHM_MB = 512


def read_v2(document: Document, places: dict[str, YamlPath]) -> Job | None:
    """The job, and in `places` where its parts are said; None where problems were added that leave none."""
    found = validate(V2File, document)
    if found is None:
        return None
    if not found.task_roles:
        document.add(("taskRoles",), "site.missing", "is empty", "describe each role of the job below it")
        return None
    return _Reading(document, found, places).job()


@dataclass(frozen=True)
class _Reading:
    document: Document
    file: V2File
    places: dict[str, YamlPath]
    # the secrets are filled in where they stand, and what has one is kept apart
    confidential: set[str] = field(default_factory=set)
    room: CommandRoom = field(default_factory=CommandRoom)

    def job(self) -> Job | None:
        """The job."""
        file, extras = self.file, self._extras
        self._check_prerequisites()
        self._check_deployments()
        extras.check()
        roles = tuple(self._role(name, role) for name, role in file.task_roles.items())
        mounts = list(extras.mounts())
        self.places.update(extras.places())
        self.places["virtual-cluster"] = ("defaults", "virtualCluster")
        self.places.update({f"mount:{mount.storage}": path for mount, path in mounts})
        check_names(self.document, ("name",), file.name, {role.name: ("taskRoles", role.name) for role in roles})
        check_roles(self.document, ("name",), file.name, roles)
        if any(problem.is_error for problem in self.document.problems):
            return None
        job = Job(
            name=file.name,
            roles=roles,
            virtual_cluster=file.defaults.virtual_cluster,
            priority=file.extras.hived_scheduler.job_priority_class,
            retries=file.job_retry_count,
            gang=file.extras.gang_allocation,
            lazy_preemption=file.extras.hived_scheduler.lazy_preemption_enable,
            gang_release=file.extras.hived_scheduler.gang_release_enable,
            mounts=tuple(mount for mount, _ in mounts),
            group=file.extras.pai_install.group,
            web_port=file.extras.pai_install.web_port or 0,
            ssh_port=file.extras.pai_install.ssh_port or 0,
            notebook=file.extras.pai_install.notebook,
        )
        check_variables(self.document, job, {role.name: ("taskRoles", role.name, "commands") for role in roles})
        return job

    @cached_property
    def _extras(self) -> ExtrasReading:
        counts = {name: role.instances for name, role in self.file.task_roles.items()}
        return ExtrasReading(self.document, self.file.extras, counts)

    @cached_property
    def _prerequisites(self) -> dict[tuple[str, str], tuple[int, V2Prerequisite]]:
        """Type and name -> its place in the list, and itself; the first of that name."""
        found: dict[tuple[str, str], tuple[int, V2Prerequisite]] = {}
        for number, one in enumerate(self.file.prerequisites):
            found.setdefault((one.type, one.name), (number, one))
        return found

    @cached_property
    def _by_name(self) -> dict[str, tuple[int, V2Prerequisite]]:
        # Reversed, so that of two types with one name the first of the file counts.
        return {name: one for (_, name), one in reversed(self._prerequisites.items())}

    @cached_property
    def _plugin_commands(self) -> tuple[tuple[tuple[str, ...] | None, Wrapped], ...]:
        return tuple(self._extras.commands())

    def _check_prerequisites(self) -> None:
        for number, one in enumerate(self.file.prerequisites):
            path: YamlPath = ("prerequisites", number)
            if self._prerequisites[(one.type, one.name)][0] != number:
                message = f"{one.name} is the name of another {one.type}"
                self.document.add((*path, "name"), "site.twice", message, "give it another name")
            self._check_uri((*path, "uri"), one)
            if one.auth is not None and one.type != "dockerimage":
                message = "goes with a dockerimage only"
                self.document.add((*path, "auth"), "site.contradiction", message, "remove it")
            if one.callbacks is not None and one.plugin is None:
                remedy = "add plugin: com.microsoft.pai.runtimeplugin.cmd"
                self.document.add((*path, "callbacks"), "site.missing", "no plugin runs them", remedy)
            for needed in one.require:
                if needed not in self._by_name:
                    self._unknown((*path, "require"), needed, "prerequisite", self._by_name)

    def _check_uri(self, path: YamlPath, one: V2Prerequisite) -> None:
        if one.type == "dockerimage":
            if one.uri is None:
                self.document.add(path, "site.missing", f"the image {one.name} needs uri", "e.g. uri: python:3.12")
            return
        if one.type == "data" and one.uri is not None and not isinstance(one.uri, Items):
            message = "a list is expected: commands refer to it by <% $data.uri[0] %>"
            self.document.add(path, "site.type", message, "write one address per line, each after '- '")
        for address in one.uri if isinstance(one.uri, Items) else [one.uri]:
            if isinstance(address, Text) and address.lower().startswith("hdfs:"):
                remedy = "keep it on a storage of the site, and mount that by extras.storages"
                self.document.add(path, "site.unsupported", "there is no HDFS here", remedy)

    def _check_deployments(self) -> None:
        seen: set[str] = set()
        for number, one in enumerate(self.file.deployments):
            path: YamlPath = ("deployments", number)
            if one.name in seen:
                message = f"{one.name} is the name of another deployment"
                self.document.add((*path, "name"), "site.twice", message, "give it another name")
            seen.add(one.name)
            for role in one.task_roles:
                if role not in self.file.task_roles:
                    self._unknown((*path, "taskRoles", role), role, "role", self.file.task_roles)
        chosen = self.file.defaults.deployment
        if chosen is not None and chosen not in seen:
            self._unknown(("defaults", "deployment"), chosen, "deployment", seen)

    def _unknown(self, path: YamlPath, name: str, what: str, known: Iterable[str]) -> None:
        names = list(known)
        remedy = did_you_mean(name, names) if names else f"there is no {what} in this file"
        self.document.add(path, "site.unknown-name", f"{short(name)} is no {what} of the job", remedy)

    def _role(self, name: str, role: V2Role) -> Role:
        path: YamlPath = ("taskRoles", name)
        self.places[f"role:{name}"] = path
        self.places[f"resources:{name}"] = (*path, "resourcePerInstance")
        requested, options = role.resource_per_instance, role.extra_container_options
        if options.infiniband:
            message, remedy = "no InfiniBand devices are given to jobs by this version", "remove it"
            self.document.add((*path, "extraContainerOptions", "infiniband"), "site.unsupported", message, remedy)
        if options.shm_mb is not None and options.shm_mb > requested.memory_mb:
            message = f"{options.shm_mb} is more than memoryMB, which it is a part of"
            remedy = f"write {requested.memory_mb} at most"
            self.document.add((*path, "extraContainerOptions", "shmMB"), "site.contradiction", message, remedy)
        image, login = self._image(path, role)
        command, confidential = self._command(name, role)
        failed, succeeded = role.completion.min_failed_instances, role.completion.min_succeeded_instances
        check_endings(self.document, (*path, "completion"), role.instances, minFailedInstances=failed,
                      minSucceededInstances=succeeded)  # fmt: skip
        hived_options = self._extras.options(name)
        return Role(
            name=name,
            instances=role.instances,
            image=image,
            command=command,
            resources=Resources(
                cpu=requested.cpu,
                memory_mb=requested.memory_mb,
                gpus=requested.gpu,
                # Shared memory counts as memory of the container, so it cannot be larger.
                shm_mb=options.shm_mb or min(_SHM_MB, requested.memory_mb),
                sku=hived_options.sku_type,
            ),
            ports=tuple(JobPort(label, count) for label, count in requested.ports.items()),
            min_failed=None if failed == -1 else failed_ending(failed or 1, role.instances),
            min_succeeded=None if succeeded == -1 else succeeded_ending(succeeded, role.instances),
            retries=role.task_retry_count,
            login=login,
            confidential=confidential,
            pinned_cell=hived_options.pinned_cell_id or "",
            affinity_group=hived_options.affinity_group_name or "",
        )

    def _image(self, path: YamlPath, role: V2Role) -> tuple[str, PullLogin | None]:
        number, one = self._prerequisites.get(("dockerimage", role.docker_image), (0, None))
        if one is None:
            known = [name for kind, name in self._prerequisites if kind == "dockerimage"]
            message = f"{short(role.docker_image)} is no dockerimage of prerequisites"
            remedy = did_you_mean(role.docker_image, known) or "name one by its name there, not by its address"
            if not known:
                remedy = "add prerequisites: - {type: dockerimage, name: NAME, uri: IMAGE}"
            self.document.add((*path, "dockerImage"), "site.unknown-name", message, remedy)
            return "", None
        at: YamlPath = ("prerequisites", number)
        login = self._login((*at, "auth"), one.auth, str(one.uri)) if one.auth is not None else None
        if one.uri is None:
            return "", login
        try:
            return read_image(one.uri), login
        except ValueError as error:
            details = getattr(error, "context", None) or {}
            self.document.add((*at, "uri"), "site.image", details.get("message", ""), details.get("remedy", ""))
            return "", login

    def _login(self, path: YamlPath, auth: V2Auth, image: str) -> PullLogin | None:
        references = References(self.document, {SECRETS: self.file.secrets}, self.room)
        found: dict[str, str] = {}
        for key in ("username", "password", "registryuri"):
            value = getattr(auth, key)
            if isinstance(value, Text):
                found[key] = references.fill(value).text
            elif value is not None:
                self.document.add((*path, key), "site.type", "text is expected", "write `<% $secrets.NAME %>`")
            elif key != "registryuri":
                self.document.add(path, "site.missing", f"needs {key}", f"add {key}: <% $secrets.NAME %>")
        host = image.partition("/")[0]
        # Docker takes the first part of an image for a registry only in these forms.
        usual = host if "." in host or ":" in host or host == "localhost" else "docker.io"
        if {"username", "password"} - found.keys():
            return None
        return PullLogin(found.get("registryuri") or usual, found["username"], found["password"])

    def _command(self, name: str, role: V2Role) -> tuple[str, bool]:
        """The role's script, and whether a secret is in it."""
        scope: dict[str, object] = {"$parameters": self.file.parameters, SECRETS: self.file.secrets}
        for kind in _REFERRED:
            chosen = getattr(role, kind)
            if chosen is None:
                continue
            if (kind, chosen) not in self._prerequisites:
                known = [one for other, one in self._prerequisites if other == kind]
                self._unknown(("taskRoles", name, kind), chosen, f"prerequisite of type {kind}", known)
                continue
            number, _ = self._prerequisites[(kind, chosen)]
            scope[f"${kind}"] = self.document.at(("prerequisites", number))
        for kind in _REFERRED:
            scope.setdefault(f"${kind}", None)
        filler = _Filler(References(self.document, scope, self.room))
        deployment = next((one for one in self.file.deployments if one.name == self.file.defaults.deployment), None)
        around = deployment.task_roles.get(name) if deployment is not None else None
        commands = [
            *filler.fill(around.pre_commands if around else ()),
            *filler.fill(role.commands),
            *filler.fill(around.post_commands if around else ()),
        ]
        wrapped = [
            Wrapped(tuple(filler.fill(one.before)), tuple(filler.fill(one.after)), one.strict)
            for one in self._around(name, role)
        ]
        return script(commands, wrapped), filler.secret

    def _around(self, name: str, role: V2Role) -> Iterator[Wrapped]:
        """What prerequisites and plugins run, in this order."""
        for one in self._needed(name, role.prerequisites):
            if one.callbacks is not None:
                strict = one.failure_policy == "fail"
                yield Wrapped(called(one.callbacks, "taskStarts"), called(one.callbacks, "taskSucceeds"), strict)
        for roles, commands in self._plugin_commands:
            if roles is None or name in roles:
                yield commands

    def _needed(self, role: str, names: Sequence[str]) -> list[V2Prerequisite]:
        """Prerequisites by name, each once, those that it requires before it."""
        found: dict[str, V2Prerequisite] = {}
        open_ones: list[str] = []

        def add(name: str, path: YamlPath) -> None:
            if name in found or name not in self._by_name:
                return
            number, one = self._by_name[name]
            # Prerequisites may require each other in a circle.
            if name in open_ones or len(open_ones) > MAX_COUNT:
                message = f"{name} requires itself by {', '.join(open_ones)}"
                self.document.add(path, "site.contradiction", message, "remove one of them")
                return
            open_ones.append(name)
            for needed in one.require:
                add(needed, ("prerequisites", number, "require"))
            open_ones.pop()
            found.setdefault(name, one)

        for place, name in enumerate(names):
            path: YamlPath = ("taskRoles", role, "prerequisites", place)
            if name not in self._by_name:
                self._unknown(path, name, "prerequisite", self._by_name)
            add(name, path)
        return list(found.values())


@dataclass
class _Filler:
    """Fills in commands and remembers whether one has a secret."""

    references: References
    secret: bool = False

    def fill(self, commands: Iterable[str]) -> list[str]:
        """The commands as they run."""
        found = [self.references.fill(command) for command in commands]
        self.secret = self.secret or any(one.secret for one in found)
        return [one.text for one in found]
