"""A backup as one file: the archive of a control-plane node, the site's files, and the site's state.

A tar of manifest.json, machine.tar (of module pai_backup), state/ (of the site's state folder), and site/. It contains
every key of the cluster, and only its owner can read it (0600).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode, PaiError
from pai_install.registry.identity import Identity
from pai_install.run.actions import LocalWorker
from pai_install.run.site_state import KEPT
from pai_install.run.state import StateFolder, open_state
from pai_install.site.load import CONFIG, LAYOUT, SERVICES
from pai_install.site.model import Site
from pai_install.site.rotations import parse_rotations
from pai_install.system.files import require_regular, write_secret
from pai_install.system.ssh import strange_line

CHECK = "backup"
MACHINE = "machine.tar"
_MANIFEST = "manifest.json"
_SITE_FILES = (LAYOUT, CONFIG, SERVICES)
_HOST_KEYS = "known_hosts"
_STATE_FILES = (*KEPT, _HOST_KEYS)
# a backup may come from anyone: any other member could be a program that the next command runs
_MEMBERS = frozenset({MACHINE, *(f"site/{name}" for name in _SITE_FILES), *(f"state/{name}" for name in _STATE_FILES)})
# bytes of a member, but for the one that goes to the control plane
_LARGEST = 16 << 20
# of that one: etcd's data have at most 8 GiB
_LARGEST_MACHINE = 16 << 30
_PART = 1 << 20


class BackupManifest(BaseModel):
    """The description of a backup. cluster: the cluster's id. created: time of its data.

    files: member -> sha256.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal[1] = 1
    cluster: str
    leader: str
    created: str
    files: Mapping[str, str] = Field(default_factory=dict)


def backup_worker(site: Site, state: StateFolder) -> LocalWorker:
    """The work of the step that finishes a backup."""

    def finish(hosts: Sequence[str], arguments: Mapping[str, Any]) -> Sequence[Finding]:
        file, machine = Path(arguments["file"]), Path(arguments["machine"])
        try:
            manifest = BackupManifest(cluster=arguments["cluster"], leader=hosts[0], created=_time(arguments["of"]))
            pack(site.directory, state, machine, file, manifest)
        except OSError as error:
            raise PaiError(f"cannot write the backup {file}: {error.strerror}", code="backup-not-written") from error
        finally:
            machine.unlink(missing_ok=True)
        # A file that was written is not proven: it is read back before a message calls it complete.
        read_backup(file)
        size = file.stat().st_size / (1 << 20)
        message = f"{file} is a whole backup of cluster {arguments['cluster']}, {size:.1f} MiB"
        return (Finding(CHECK, Verdict.PASS, "cluster", message),)

    return finish


def _time(stamp: str) -> str:
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pack(site_dir: Path, state: StateFolder, machine: Path, file: Path, manifest: BackupManifest) -> None:
    """Writes the file atomically. manifest: without the list of files."""
    members = {MACHINE: machine, **dict(_present(site_dir, state))}
    manifest = manifest.model_copy(update={"files": {name: _sha256(path) for name, path in members.items()}})
    partial = file.with_name(f"{file.name}.partial")
    # The mode is set at creation. With a later chmod, others could read the keys for a moment.
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            with tarfile.open(fileobj=handle, mode="w:gz", compresslevel=1) as archive:
                _add(archive, _MANIFEST, json.dumps(manifest.model_dump(mode="json"), indent=2).encode())
                for name, path in members.items():
                    archive.add(path, name, recursive=False)
            handle.flush()
            # Without the sync, a crash after the rename could leave the final name with an empty file.
            os.fsync(handle.fileno())
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _present(site_dir: Path, state: StateFolder) -> Iterator[tuple[str, Path]]:
    for folder, root, names in (("site", site_dir, _SITE_FILES), ("state", state.path, _STATE_FILES)):
        # tarfile stores a link as a link, so a linked file of the site is resolved first.
        yield from ((f"{folder}/{name}", path) for name in names if (path := (root / name).resolve()).is_file())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o600
    archive.addfile(entry, io.BytesIO(content))


def read_backup(file: Path) -> BackupManifest:
    """The manifest of a backup that is whole. Raises PaiError (usage) for any other file."""
    try:
        _require_end(file)
        with tarfile.open(file) as archive:
            manifest = BackupManifest.model_validate_json(_small(archive, _MANIFEST))
            _require_whole(archive, manifest)
            return manifest
    except (OSError, tarfile.TarError, EOFError, KeyError, ValueError, ValidationError) as error:
        raise PaiError(
            f"cannot read {file}: it is not a complete backup of pai-install",
            code="backup-invalid",
            details="its content is another" if isinstance(error, ValidationError) else str(error),
            remedy="name a file of pai-install backup",
            exit_code=ExitCode.USAGE,
        ) from error


def _require_whole(archive: tarfile.TarFile, manifest: BackupManifest) -> None:
    """Raises ValueError for an unknown member, and for a member that differs from the manifest."""
    if strange := sorted(set(manifest.files) - _MEMBERS):
        raise ValueError(f"{strange[0]!r} is no member of a backup")
    for name, wanted in manifest.files.items():
        if _digest(_content(archive, name)) != wanted:
            raise ValueError(f"{name} in it is damaged")
        if name != MACHINE:
            _require_content(name, _small(archive, name))


def _require_end(file: Path) -> None:
    """Raises EOFError for a file that was cut, also after its last member: tarfile does not read that far.

    Raises ValueError for a file without end.
    """
    require_regular(file)
    size, most = 0, _LARGEST_MACHINE + _LARGEST * (len(_MEMBERS) + 1)
    with gzip.open(file) as stream:
        while part := stream.read(_PART):
            size += len(part)
            # a few KiB may stand for terabytes
            if size > most:
                raise ValueError(f"it has more than {most >> 30} GiB")


def _content(archive: tarfile.TarFile, name: str) -> Any:  # noqa: ANN401 - tarfile's own type is private
    # tarfile returns None for folders, links, and devices. A sparse file has any size, whatever the file here has.
    found = None if archive.getmember(name).issparse() else archive.extractfile(name)
    if found is None:
        raise ValueError(f"{name} in it is not a file")
    return found


def _small(archive: tarfile.TarFile, name: str) -> bytes:
    """The content of a member. Raises ValueError above the limit of size."""
    content: bytes = _content(archive, name).read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"{name} in it is larger than {_LARGEST >> 20} MiB")
    return content


def _require_content(name: str, content: bytes) -> None:
    """Raises ValueError for a content that no backup has: the next command would read it."""
    if name.startswith("site/") and any(byte < 32 and byte not in b"\t\n\r" for byte in content):
        raise ValueError(f"{name} in it is no text")
    text = content.decode()
    match name.partition("/")[2]:
        case "known_hosts":
            # a marker would name an authority
            if strange_line(text.splitlines(), markers=False):
                raise ValueError(f"{name} in it has a line that is no host key")
        case "registry.json":
            Identity.model_validate_json(text)
        case "storages.json":
            parse_rotations(text)


def take_machine(file: Path, dest: Path) -> None:
    """Extracts the control-plane node's archive to a file for the owner alone."""
    descriptor = os.open(dest, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with tarfile.open(file) as archive, os.fdopen(descriptor, "wb") as handle:
        source = _content(archive, MACHINE)
        while part := source.read(_PART):
            handle.write(part)


def bring_back(
    file: Path, manifest: BackupManifest, site_dir: Path, *, host_keys: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Restores missing files of the site and its state. Returns the written files, and the existing files that differ.

    Only the owner can read the state. host_keys: also restore those of machines. Reinstalled machines have others.
    Raises OSError.
    """
    written, others = [], []
    site_dir.mkdir(parents=True, exist_ok=True)
    state = open_state(site_dir)
    with tarfile.open(file) as archive:
        for name in (one for one in manifest.files if one != MACHINE):
            folder, _, base = name.partition("/")
            if base == _HOST_KEYS and not host_keys:
                continue
            # The name comes from the archive. Only its last part counts, so it cannot leave the folder.
            dest = (state.path if folder == "state" else site_dir) / Path(base).name
            content = _small(archive, name)
            if not dest.exists():
                write_secret(dest, content.decode())
                written.append(str(dest))
            elif dest.read_bytes() != content:
                others.append(str(dest))
    return tuple(written), tuple(others)


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return _digest(handle)


def _digest(handle: Any) -> str:  # noqa: ANN401 - any binary file
    return hashlib.file_digest(handle, "sha256").hexdigest()
