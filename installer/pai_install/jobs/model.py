"""A job as its file asks for it, whatever protocol the file speaks and whatever scheduler will run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pai_install.jobs.code import CodeArchive, StoredCode
from pai_install.json_schema import Count
from pai_install.scheduling.model import Priority


@dataclass(frozen=True, slots=True)
class JobMount:
    """A storage that the job's group was granted, and where its containers see it."""

    storage: str
    path: str


@dataclass(frozen=True, slots=True)
class JobPort:
    """Ports that every instance of a role listens on. begin: the first number; None where any will do."""

    label: str
    count: Count
    begin: Count | None = None


@dataclass(frozen=True, slots=True)
class PullLogin:
    """What a registry asks of who pulls an image. The password is in no repr."""

    registry: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one instance asks for. sku: the machines it has to run on, by the site's name; None: any that fit."""

    cpu: int
    memory_mb: int
    gpus: int
    shm_mb: int = 64
    sku: str | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """Equal instances of one program.

    name: as the user wrote it, which the names of PAI_* variables keep. command: a shell script, its parameters
    filled in. confidential: the command holds a secret, so it may stand in no object but a Secret.
    preparation: a script of ours that runs before the command.
    min_failed: instances that fail before the job has failed; None: none ends it.
    min_succeeded: instances that succeed before the job has succeeded; None: all of the role's.
    retries: of one instance, before it counts as failed.
    pinned_cell: of HiveD, on which instances run; empty: none. affinity_group: instances of all roles with this name
    start together with HiveD; empty: with the other roles without a name.
    """

    name: str
    instances: int
    image: str
    command: str = field(repr=False)
    resources: Resources
    ports: tuple[JobPort, ...] = ()
    min_failed: int | None = 1
    min_succeeded: int | None = None
    retries: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    login: PullLogin | None = None
    confidential: bool = False
    preparation: str = field(default="", repr=False)
    pinned_cell: str = ""
    affinity_group: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A gang: all instances of all roles start, or none does (but where `gang` is False).

    name: as the user wrote it. virtual_cluster: None where the file names none. retries: of the whole job; None:
    without end. priority: None for the virtual cluster's usual one. lazy_preemption: HiveD makes it opportunistic
    before it evicts it. gang_release: HiveD takes devices back when the last instance of a group has ended. group: a
    wish for the console. The command line has an option. code: files for the work folder of each instance.
    hdfs: key of the file -> folder of HDFS, until a site says which storage has it. web_port, ssh_port: of the
    web page and the SSH server in instances of the first role, 0 for none. notebook: people work in it, so the site's
    limit for notebooks counts.
    """

    name: str
    roles: tuple[Role, ...]
    virtual_cluster: str | None = None
    priority: Priority | None = None
    retries: int | None = 0
    gang: bool = True
    mounts: tuple[JobMount, ...] = ()
    lazy_preemption: bool = False
    gang_release: bool = False
    group: str | None = None
    code: CodeArchive | StoredCode | None = None
    hdfs: Mapping[str, str] = field(default_factory=dict)
    web_port: int = 0
    ssh_port: int = 0
    notebook: bool = False

    @property
    def storages(self) -> tuple[str, ...]:
        """The storages that its pods mount, for data and for code."""
        code = [self.code.storage] if isinstance(self.code, StoredCode) else []
        return tuple(dict.fromkeys([*(mount.storage for mount in self.mounts), *code]))

    @property
    def instances(self) -> int:
        """Of all roles."""
        return sum(role.instances for role in self.roles)

    @property
    def gpus(self) -> int:
        """Of all instances."""
        return sum(role.instances * role.resources.gpus for role in self.roles)
