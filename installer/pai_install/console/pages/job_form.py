"""The form of a new job, and the job file that it means. Pure: the file says what is wrong with its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from pai_install.profile.model import ClusterProfile
from pai_install.scheduling.model import Scheduling, Supply

MOST_ROLES = 16
_GIB_OF_MB = 1024
_MIB = 2**20
# path in the file -> field
_FIELDS = {
    "name": "name",
    "jobRetryCount": "retries",
    "defaults.virtualCluster": "cluster",
    "defaults.priorityClass": "priority",
    "extras.pai-install.group": "group",
}
# below a role
_ROLE_FIELDS = {
    "instances": "instances",
    "dockerImage": "image",
    "resourcePerInstance": "gpus",
    "resourcePerInstance.gpu": "gpus",
    "resourcePerInstance.cpu": "cpu",
    "resourcePerInstance.memoryMB": "memory",
    "commands": "command",
    "skuType": "sku",
}


@dataclass(frozen=True, slots=True)
class RoleForm:
    """A role as it was typed. memory: in GiB. Empty cpu and memory mean the share of the SKU."""

    name: str = "worker"
    image: str = ""
    instances: str = "1"
    sku: str = ""
    gpus: str = ""
    cpu: str = ""
    memory: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class JobForm:
    """A job as it was typed."""

    name: str = ""
    group: str = ""
    cluster: str = ""
    priority: str = ""
    retries: str = "0"
    storages: tuple[str, ...] = ()
    roles: tuple[RoleForm, ...] = (RoleForm(),)

    @classmethod
    def read(cls, form: Mapping[str, str]) -> JobForm:
        """The fields of a request."""
        roles = tuple(_roles(form))
        storages = tuple(name.removeprefix("storage.") for name in form if name.startswith("storage."))
        words = {name: form.get(name, "").strip() for name in ("name", "group", "cluster", "priority", "retries")}
        return cls(**words, storages=storages, roles=roles or (RoleForm(),))

    def with_role(self) -> JobForm:
        """One role more, like the last one, up to MOST_ROLES."""
        if len(self.roles) >= MOST_ROLES:
            return self
        new = replace(self.roles[-1], name=f"role{len(self.roles) + 1}", command="")
        return replace(self, roles=(*self.roles, new))

    def without_role(self, number: str) -> JobForm:
        """One role less, down to one."""
        kept = tuple(role for index, role in enumerate(self.roles) if str(index) != number)
        return replace(self, roles=kept) if kept else self

    def text(self, profile: ClusterProfile) -> str:
        """The job file in OpenPAI's protocol 2."""
        scheduling = profile.require_scheduling()
        file: dict[str, Any] = {"protocolVersion": 2, "name": self.name, "type": "job"}
        file["jobRetryCount"] = _number(self.retries)
        names = self._images
        file["prerequisites"] = [{"name": name, "type": "dockerimage", "uri": image} for image, name in names.items()]
        file["taskRoles"] = {role.name: _role(scheduling, role, names[role.image]) for role in self.roles}
        file["defaults"] = {
            **({"virtualCluster": self.cluster} if self.cluster else {}),
            **({"priorityClass": self.priority} if self.priority else {}),
        }
        file["extras"] = self._extras()
        kept = {key: value for key, value in file.items() if value not in ({}, None)}
        return str(yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, width=100))

    def field_of(self, path: str) -> str:
        """The field whose value the file has at a path, or "" for a value of no field."""
        for number, role in enumerate(self.roles):
            for place in (f"taskRoles.{role.name}", f"extras.hivedScheduler.taskRoles.{role.name}"):
                if path == place or path.startswith(f"{place}."):
                    return f"r{number}.{_ROLE_FIELDS.get(path[len(place) + 1 :], 'name')}"
            if path.startswith(f"prerequisites[{list(self._images).index(role.image)}]"):
                return f"r{number}.image"
        return "r0.name" if path == "taskRoles" else _FIELDS.get(path, "")

    @property
    def _images(self) -> dict[str, str]:
        """Image -> its name in the file."""
        images = dict.fromkeys(role.image for role in self.roles)
        return {image: f"image{number}" if number else "image" for number, image in enumerate(images)}

    def _extras(self) -> dict[str, Any]:
        skus = {role.name: {"skuType": role.sku} for role in self.roles if role.sku}
        return {
            **({"hivedScheduler": {"taskRoles": skus}} if skus else {}),
            **({"storages": [{"name": name} for name in self.storages]} if self.storages else {}),
            **({"pai-install": {"group": self.group}} if self.group else {}),
        }


def _roles(form: Mapping[str, str]) -> Iterator[RoleForm]:
    for number in range(MOST_ROLES):
        if f"r{number}.name" not in form:
            return
        words = {name: form.get(f"r{number}.{name}", "").strip() for name in RoleForm.__dataclass_fields__}
        yield RoleForm(**words)


def _role(scheduling: Scheduling, role: RoleForm, image: str) -> dict[str, Any]:
    lines = [line.rstrip() for line in role.command.splitlines() if line.strip()]
    return {
        "instances": _number(role.instances),
        "dockerImage": image,
        "resourcePerInstance": _resources(scheduling, role),
        "commands": lines,
    }


def _resources(scheduling: Scheduling, role: RoleForm) -> dict[str, Any]:
    """What an instance requests. A share of the SKU replaces what is not typed."""
    supply = scheduling.supply.get(role.sku) or next(_candidates(scheduling, role), None)
    gpus = _number(role.gpus or "0")
    units = max(1, gpus) if isinstance(gpus, int) else 1
    cpu, memory = _number(role.cpu), _number(role.memory)
    if not role.cpu:
        cpu = max(1, supply.cpu_millis * units // 1000) if supply is not None else 1
    if not role.memory:
        memory_mb: int | str = supply.memory_bytes * units // _MIB if supply is not None else _GIB_OF_MB
    else:
        memory_mb = memory * _GIB_OF_MB if isinstance(memory, int) else memory
    return {"cpu": cpu, "memoryMB": memory_mb, **({"gpu": gpus} if gpus else {})}


def _candidates(scheduling: Scheduling, role: RoleForm) -> Iterator[Supply]:
    """SKUs that fit a role without one: with devices for a role with GPUs."""
    wants = bool(role.gpus) and role.gpus != "0"
    return (supply for supply in scheduling.supply.values() if bool(supply.resource) == wants)


def _number(word: str) -> int | str:
    """The number, or the text as it was typed, of which the check of the file then tells."""
    return int(word) if word.isdecimal() and word.isascii() and len(word) < 10 else word
