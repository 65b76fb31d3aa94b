"""What follows from the state of jobs: logs to read, records to write and drop, jobs to end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

from pai_install.agents.common.records import Record
from pai_install.agents.common.values import Json


@dataclass(frozen=True)
class Read:
    """To read the last lines of a container. last: whether it had ended when this was asked for."""

    job: str
    namespace: str
    pod: str
    container: str
    last: bool


@dataclass(frozen=True)
class WriteState:
    """An order to write the state of a job."""

    record: Record


@dataclass(frozen=True)
class WriteLogs:
    """To write the last lines of a job's pods."""

    job: Json
    logs: Mapping[str, str]


@dataclass(frozen=True)
class Drop:
    """To delete a record."""

    record: Record


@dataclass(frozen=True)
class End:
    """To end a job that failed too often."""

    job: Json


Action = Union[Read, WriteState, WriteLogs, Drop, End]
