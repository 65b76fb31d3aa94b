"""scheduler and virtual-clusters: guarantees of machines, and their scheduler. An extension."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from pai_install.documents.quantity import QuantityError, parse_bytes
from pai_install.documents.scalars import invalid, read_text, read_whole, shown
from pai_install.site.fields import LabelKey
from pai_install.site.names import read_host_name
from pai_install.site.services.section import Count, Flag, KebabSection, ListOf, Word, Words, choice
from pai_install.site.services.use_limits import IdleLimit, LongLimit, NotebookLimit

SchedulerType = Literal["kueue", "volcano", "default", "hived"]
PriorityName = Literal["crit", "prod", "test", "oppo"]
Portion = Literal["all", "none"] | int

# the highest first
PRIORITY_NAMES: tuple[PriorityName, ...] = ("crit", "prod", "test", "oppo")
TYPES: tuple[SchedulerType, ...] = ("kueue", "volcano", "default", "hived")
MAX_NAME = 40
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def read_cluster_name(value: object) -> str:
    """Reads a name that is valid in Kubernetes and short enough for derived names."""
    word = read_text(value)
    if _NAME.fullmatch(word) is None or len(word) > MAX_NAME:
        meant = re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:MAX_NAME].strip("-")
        remedy = f"write {meant}" if meant else "write lower-case letters, digits and '-'"
        message = (
            f"{shown(word)} is no name for it: Kubernetes takes up to {MAX_NAME} lower-case letters, digits and '-'"
        )
        raise invalid("cluster-name", message, remedy)
    return word


def _read_portion(value: object) -> Portion:
    if value in ("all", "none") and isinstance(value, str):
        return "all" if value == "all" else "none"
    word = read_text(value)
    if not re.fullmatch(r"[+-]?[0-9_]+", word):
        message = f"{shown(word)} is neither all, none nor a number of units"
        raise invalid("portion", message, "a unit is one device, or one core where the SKU has none")
    number = read_whole(word)
    if number < 0:
        raise invalid("portion", f"{number} is below zero", "write none, or how many units")
    return number


def _read_memory(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    word = read_text(value)
    try:
        amount = parse_bytes(word)
    except QuantityError as error:
        raise invalid("quantity", str(error), error.remedy) from error
    if amount < 2**20:
        raise invalid("quantity", f"{shown(word)} means {amount} bytes", "write it as Kubernetes does, e.g. 64Gi")
    return amount


ClusterName = Annotated[str, BeforeValidator(read_cluster_name), WithJsonSchema({"type": "string"})]
Memory = Annotated[int, BeforeValidator(_read_memory), WithJsonSchema({"type": ["string", "integer"]})]
Amount = Annotated[
    Portion,
    BeforeValidator(_read_portion),
    WithJsonSchema({"anyOf": [{"enum": ["all", "none"]}, {"type": "integer", "minimum": 0}]}),
]
MachineName = Annotated[str, BeforeValidator(read_host_name), WithJsonSchema({"type": "string"})]
Priority = Annotated[PriorityName, choice(*PRIORITY_NAMES)]


class LevelEntry(KebabSection):
    """scheduler.topology[]: a level of topology above the machine."""

    name: ClusterName
    """Name for jobs, such as rack."""
    label: LabelKey
    """Label of the machines in layout.yaml with their place, such as example.com/rack."""


class Scheduler(KebabSection):
    """scheduler: the scheduler of the virtual clusters."""

    type: Annotated[SchedulerType, choice(*TYPES)]
    """kueue, volcano, hived, or default (the scheduler of Kubernetes, which cannot lend)."""
    topology: Annotated[tuple[LevelEntry, ...], ListOf] = ()
    """Levels above the machine, the widest first. The machine is always the last level. Do not list it."""
    training_operator: Flag = False
    """Install Kubeflow's training-operator. Not available with hived."""


class QuotaEntry(KebabSection):
    """virtual-clusters[].quota[]: the guarantee of one SKU. Exactly one of machines, devices, and cores."""

    sku: Word
    """Machine type of workers in layout.yaml."""
    machines: Count | None = None
    """Number of whole machines. The scheduler chooses them."""
    devices: Count | None = None
    """Number of devices, such as GPUs."""
    cores: Count | None = None
    """Number of cores of an SKU without devices."""
    memory: Memory | None = None
    """Memory of the cores. [default: in proportion to the cores of the machine]"""
    lend: Amount = "all"
    """Idle quota that others may borrow: all, none, or a number of devices or cores."""
    borrow: Amount = "all"
    """Idle quota of others that it may borrow: all, none, or a number of devices or cores."""


class Priorities(KebabSection):
    """virtual-clusters[].priorities: crit, prod, test, or oppo, as in OpenPAI. oppo jobs may always be preempted."""

    usual: Priority | None = None
    """Priority of jobs without one. [default: test, or highest if that is lower]"""
    highest: Priority = "crit"
    """Highest priority of its jobs."""

    @property
    def normal(self) -> PriorityName:
        """Returns the default priority of a job."""
        lower: PriorityName = (
            self.highest if PRIORITY_NAMES.index(self.highest) > PRIORITY_NAMES.index("test") else "test"
        )
        return self.usual or lower


class VirtualClusterEntry(KebabSection):
    """virtual-clusters[]: a share of the cluster's workers, and who may use it."""

    name: ClusterName
    """Name for jobs. The usual name in OpenPAI is default."""
    groups: Words = ()
    """Groups that may submit jobs, in addition to their acls. [default: every group of the site]"""
    quota: Annotated[tuple[QuotaEntry, ...], ListOf] = ()
    """Guaranteed quota, in addition to the pinned machines."""
    pinned: Annotated[tuple[MachineName, ...], ListOf] = ()
    """Machines of this virtual cluster only. They are not lent."""
    priorities: Priorities = Priorities()
    """Priorities of its jobs."""
    pods_per_job: Count | None = None
    """Maximum number of pods of a job at a time. A pod is on one machine. [default: 10000]"""
    idle: IdleLimit | None = None
    """Rule for jobs with idle GPUs. Missing keys come from jobs.idle."""
    long: LongLimit | None = None
    """Rule for long jobs. Missing keys come from jobs.long."""
    notebooks: NotebookLimit | None = None
    """Rule for unused notebooks. Missing keys come from jobs.notebooks."""
