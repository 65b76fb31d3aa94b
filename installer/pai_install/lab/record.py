"""The record of a lab's objects on the controller host, written before their creation, for `down` after a crash."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.system.files import write_atomic

SCHEMA_VERSION = 1


class Kind(StrEnum):
    """Kinds of things, in the order in which they are removed."""

    PROCESS = "process"
    MOUNT = "mount"
    VETH = "veth"
    NETNS = "netns"
    BRIDGE = "bridge"
    NFT_TABLE = "nft-table"
    FORWARD_RULE = "forward-rule"
    CGROUP = "cgroup"
    KNOWN_HOSTS = "known-hosts"
    KEY_PAIR = "key-pair"
    MIXIN = "mix-in"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class Resource:
    """One object on the host. `name` identifies it within its kind. `detail`: further data for its removal."""

    kind: Kind
    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LabRecord:
    """Contents of a lab's record file."""

    lab: str
    site: str
    resources: tuple[Resource, ...] = field(default=())

    def of(self, kind: Kind) -> tuple[Resource, ...]:
        """Recorded resources of one kind."""
        return tuple(resource for resource in self.resources if resource.kind is kind)

    def to_json(self) -> str:
        """Returns the record as text for `from_json`."""
        rows = [[resource.kind.value, resource.name, resource.detail] for resource in self.resources]
        document = {"schema_version": SCHEMA_VERSION, "lab": self.lab, "site": self.site, "resources": rows}
        return json.dumps(document, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> LabRecord:
        """Raises ValueError or KeyError when the text is not a record."""
        document = json.loads(text)
        if document["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema version {document['schema_version']}")
        rows = [Resource(Kind(kind), name, detail) for kind, name, detail in document["resources"]]
        return cls(document["lab"], document["site"], tuple(rows))


def is_abandoned(record: LabRecord) -> bool:
    """Whether the folder of the lab's site is gone, and with it the files that would name the lab."""
    return not Path(record.site).parent.exists()


class Ledger:
    """The record file of one lab. Every change is on disk when the method returns. Thread-safe."""

    def __init__(self, path: Path, record: LabRecord) -> None:
        self._path = path
        self._record = record
        self._lock = threading.Lock()

    @property
    def record(self) -> LabRecord:
        """Returns the current record."""
        return self._record

    def add(self, resources: Iterable[Resource]) -> None:
        """Records resources. A resource replaces an older one of the same kind and name."""
        new = {(resource.kind, resource.name): resource for resource in resources}
        with self._lock:
            kept = [old for old in self._record.resources if (old.kind, old.name) not in new]
            self._write((*kept, *new.values()))

    def forget(self, resources: Iterable[Resource]) -> None:
        """Writes down that these are gone."""
        gone = set(resources)
        with self._lock:
            self._write(tuple(kept for kept in self._record.resources if kept not in gone))

    def _write(self, resources: tuple[Resource, ...]) -> None:
        if resources != self._record.resources or not self._path.exists():
            self._record = LabRecord(self._record.lab, self._record.site, resources)
            write_atomic(self._path, self._record.to_json(), mode=0o600)


def names_site(path: Path, site: str) -> bool:
    """Whether the record at `path` is of that site, also when the rest of it cannot be read."""
    try:
        return bool(json.loads(path.read_text())["site"] == site)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read_record(path: Path) -> LabRecord | None:
    """The record at `path`, None when there is none. Raises PaiError when it cannot be read."""
    try:
        return LabRecord.from_json(path.read_text())
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise PaiError(
            f"cannot read {path}: it belongs to root",
            code="lab-record-of-root",
            remedy="repeat the command with sudo",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise PaiError(
            f"cannot read {path}: it is not a lab record: {error}",
            code="lab-record-invalid",
            remedy="delete its folder if no lab is running",
            exit_code=ExitCode.STEP_FAILED,
        ) from error
