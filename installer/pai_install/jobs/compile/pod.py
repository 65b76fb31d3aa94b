"""The pod of a role, as all schedulers have it in common. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.agents.common.owner_ports import SSH_PORT, WEB_PORT
from pai_install.jobs.code import CodeArchive, StoredCode
from pai_install.jobs.compile import names as labels
from pai_install.jobs.compile.names import JobNames
from pai_install.jobs.compile.variables import VISIBLE, variables
from pai_install.jobs.model import Job, PullLogin, Role
from pai_install.jobs.place import JobPlace
from pai_install.scheduling.model import HOST_LABEL, SKU_LABEL
from pai_install.site.use_limits import NOTEBOOK_LABEL

Object = dict[str, Any]

# $1: the command, or the file that has it. As in OpenPAI bash reads it, where the image has one.
_RUN = 'shell="$(command -v bash || command -v sh)" && exec "$shell" -c "$1"'
_RUN_FILE = 'shell="$(command -v bash || command -v sh)" && exec "$shell" "$1"'
_COMMANDS = "/usr/local/pai/command"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a container's own
_NVIDIA = "nvidia.com/"


@dataclass(frozen=True, slots=True)
class Outline:
    """A job on its way to objects. index: the field of a pod that has its number."""

    job: Job
    place: JobPlace
    names: JobNames
    index: str

    @property
    def marks(self) -> dict[str, str]:
        """Labels of everything that is made for the job."""
        owner = self.place.owner
        return {
            labels.JOB: self.names.job,
            labels.USER: owner.user,
            labels.GROUP: owner.group,
            labels.CLUSTER: self.place.cluster.name,
            **({NOTEBOOK_LABEL: "true"} if self.job.notebook else {}),
        }

    def metadata(self, **more: str) -> Object:
        """That of the job's own object. more: labels beside the marks."""
        roles = {
            self.names.roles[role.name]: {"name": role.name, "instances": role.instances, "gpus": role.resources.gpus}
            for role in self.job.roles
        }
        notes = {
            labels.JOB_NAME: self.job.name,
            labels.ROLES: json.dumps(roles),
            labels.PRIORITY: self.place.priority,
        }
        spot = {"name": self.names.job, "namespace": self.place.owner.namespace}
        if self.job.code is not None:
            notes[labels.CODE] = f"sha256:{self.job.code.digest}"
        if isinstance(self.job.code, StoredCode):
            notes[labels.CODE_PLACE] = self.job.code.note
        return {**spot, "labels": {**self.marks, **more}, "annotations": notes}


@dataclass(frozen=True, slots=True)
class PodExtras:
    """What one scheduler wants of a pod beside the rest. devices: None: the machine's are asked of Kubernetes.

    selects_sku: the label of its node selects the machine type. Otherwise the scheduler does.
    """

    spec: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, str] | None = None
    env: tuple[Object, ...] = ()
    selects_sku: bool = True


def pod_template(gang: Outline, role: Role, extras: PodExtras) -> Object:
    """A pod of a role. Its processes are not the first of their container: they end when they are told to."""
    volumes = list(_volumes(gang, role))
    secret = gang.names.secret(role, gang.place.owner.user, "login")
    selects = _node_labels(gang, role, extras)
    spec: Object = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        **({"runtimeClassName": "nvidia"} if _requests_nvidia(gang, role) else {}),
        **({"imagePullSecrets": [{"name": secret}]} if role.login is not None else {}),
        **({"nodeSelector": selects} if selects else {}),
        **extras.spec,
        "containers": [_container(gang, role, extras, [mount for _, mount in volumes])],
        "volumes": [volume for volume, _ in volumes],
    }
    ports = {WEB_PORT: gang.job.web_port, SSH_PORT: gang.job.ssh_port} if role.name == gang.job.roles[0].name else {}
    opened = {label: str(port) for label, port in ports.items() if port}
    metadata = {"labels": {**gang.marks, labels.ROLE: gang.names.roles[role.name], **opened}}
    if extras.annotations:
        metadata["annotations"] = dict(extras.annotations)
    return {"metadata": metadata, "spec": spec}


def _node_labels(gang: Outline, role: Role, extras: PodExtras) -> dict[str, str]:
    """The labels of its nodes. Kueue chooses nodes by these alone, and knows nothing of the nodes of a volume."""
    sku = {SKU_LABEL: role.resources.sku} if role.resources.sku and extras.selects_sku else {}
    return {**sku, **({HOST_LABEL: gang.place.machine} if gang.place.machine else {})}


def _requests_nvidia(gang: Outline, role: Role) -> bool:
    return bool(role.resources.gpus) and gang.place.supply(role).resource.startswith(_NVIDIA)


def _container(gang: Outline, role: Role, extras: PodExtras, mounts: list[Object]) -> Object:
    env = [*extras.env, *variables(gang.job, role, gang.place, gang.names, gang.index)]
    if not role.resources.gpus:
        # images of CUDA say "all"
        env = [{"name": VISIBLE[0], "value": "void"}, *env]
    file = f"{_COMMANDS}/command.sh"
    # Kubernetes would take $(NAME) for a variable, and $$ for $
    words = [_RUN_FILE, "sh", file] if role.confidential else [_RUN, "sh", _script(gang, role).replace("$", "$$")]
    return {
        "name": "main",
        "image": role.image,
        "command": ["/bin/sh", "-c", words[0].replace("$(", "$$("), *words[1:]],
        "env": env,
        "resources": _resources(gang, role, extras),
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _script(gang: Outline, role: Role) -> str:
    """The command, after the code is in the work folder."""
    code = gang.job.code
    return f"{code.unpack if code is not None else ''}{role.preparation}{role.command}"


def _resources(gang: Outline, role: Role, extras: PodExtras) -> Object:
    requested = role.resources
    amounts = {"cpu": str(requested.cpu), "memory": f"{requested.memory_mb}Mi"}
    devices = extras.devices
    if devices is None:
        devices = {gang.place.supply(role).resource: str(requested.gpus)} if requested.gpus else {}
    return {"requests": {**amounts, **devices}, "limits": {**amounts, **devices}}


def _volumes(gang: Outline, role: Role) -> Iterator[tuple[Object, Object]]:
    """Volumes, and where the container has them."""
    shared = {"medium": "Memory", "sizeLimit": f"{role.resources.shm_mb}Mi"}
    yield {"name": "shm", "emptyDir": shared}, {"name": "shm", "mountPath": _SHARED_MEMORY}
    for number, mount in enumerate(gang.job.mounts):
        claim, name = gang.place.claims[mount.storage], f"storage-{number}"
        folder = {"subPath": claim.folder} if claim.folder else {}
        at = {"name": name, "mountPath": mount.path, **folder}
        yield {"name": name, "persistentVolumeClaim": {"claimName": claim.name}}, at
    if isinstance(gang.job.code, CodeArchive):
        yield gang.job.code.volume(gang.names.job)
    elif gang.job.code is not None:
        claim = gang.place.claims[gang.job.code.storage]
        yield gang.job.code.volume(claim.name, claim.folder, gang.place.owner.namespace)
    if role.confidential:
        name = gang.names.secret(role, gang.place.owner.user, "command")
        volume: Object = {"name": "command", "secret": {"secretName": name}}
        yield volume, {"name": "command", "mountPath": _COMMANDS, "readOnly": True}


def companions(gang: Outline) -> Iterator[Object]:
    """Logins at registries, commands that no one else may read, and the code."""
    if isinstance(gang.job.code, CodeArchive):
        yield from gang.job.code.config_maps(gang.names.job, gang.place.owner.namespace, gang.marks)
    for role in gang.job.roles:
        owner = gang.place.owner.user
        if role.login is not None:
            docker = {".dockerconfigjson": _docker_config(role.login)}
            yield _secret(gang, gang.names.secret(role, owner, "login"), "kubernetes.io/dockerconfigjson", docker)
        if role.confidential:
            yield _secret(
                gang, gang.names.secret(role, owner, "command"), "Opaque", {"command.sh": _script(gang, role)}
            )


def _docker_config(login: PullLogin) -> str:
    auth = base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
    return json.dumps({"auths": {login.registry: {"auth": auth}}})


def _secret(gang: Outline, name: str, kind: str, content: Mapping[str, str]) -> Object:
    metadata = {"name": name, "namespace": gang.place.owner.namespace, "labels": gang.marks}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "stringData": dict(content)}
