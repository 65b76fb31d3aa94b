"""The code of a job: an archive in ConfigMaps or on a storage, unpacked before its command. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.agents.common.values import InvalidJsonError, parse_object

# bytes of an archive: etcd keeps it, which all groups share
MAX_ARCHIVE = 1024 * 1024
# of one ConfigMap: in base64, with its name, below the limit of ConfigMaps of users
PART = 90 * 1024
FOLDER = "/usr/local/pai/code"
_VOLUME = "code"
# folder of a storage, with one folder for each namespace
STORED = ".pai-code"
_DIGEST = re.compile(r"[0-9a-f]{64}")
# before the command, in the same shell
UNPACK = f"""\
mkdir -p "$PAI_WORK_DIR" && cd "$PAI_WORK_DIR" && cat {FOLDER}/* | tar -xzf - || {{
echo "cannot unpack the code into $PAI_WORK_DIR: the image needs tar, gzip, and a writable folder" >&2
exit 1
}}
"""


# others can write to the storage, so the job checks its own copy, and the archive cannot grow in the meantime
_UNPACK_STORED = """\
mkdir -p "$PAI_WORK_DIR" && cd "$PAI_WORK_DIR" && code=.pai-code-@SHORT@.tar.gz && {
{ [ -f @FILE@ ] && [ ! -L @FILE@ ]; } || {
echo "the storage @STORAGE@ does not have the code @SHORT@: submit the job again with --code" >&2
exit 1
}
head -c @SIZE@ @FILE@ >"$code" && [ "$(sha256sum <"$code")" = "@DIGEST@  -" ] || {
rm -f "$code"
echo "the code @SHORT@ on the storage @STORAGE@ is not what was submitted: submit the job again with --code" >&2
exit 1
}
gzip -dc "$code" | head -c @UNPACKED@ | tar -xf - && rm -f "$code"
} || {
rm -f "$code"
echo "cannot unpack the code into $PAI_WORK_DIR: the image needs tar, gzip, sha256sum, and a writable folder" >&2
exit 1
}
"""


@dataclass(frozen=True, slots=True)
class CodeArchive:
    """A tar.gz of files. The same files always give the same archive."""

    content: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """The sha256 of the archive."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def unpack(self) -> str:
        """The commands that unpack it."""
        return UNPACK

    def parts(self) -> Iterator[tuple[str, bytes]]:
        """Yields pieces that ConfigMaps can hold, by names in their order."""
        for number, start in enumerate(range(0, len(self.content), PART)):
            yield _part(number), self.content[start : start + PART]

    def config_maps(self, job: str, namespace: str, marks: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yields the ConfigMaps of a job's code. job: the job's name in Kubernetes."""
        for name, piece in self.parts():
            metadata = {"name": part_map(job, name), "namespace": namespace, "labels": dict(marks)}
            data = {name: base64.b64encode(piece).decode()}
            yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data}

    def volume(self, job: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The volume with all parts, and where the container has it."""
        sources = [{"configMap": {"name": part_map(job, name)}} for name, _ in self.parts()]
        mount = {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}
        return {"name": _VOLUME, "projected": {"sources": sources}}, mount


@dataclass(frozen=True, slots=True)
class StoredCode:
    """An archive on a storage of the group. digest: its sha256. size, unpacked: its bytes, and those of its tar."""

    digest: str
    storage: str
    size: int
    unpacked: int

    @property
    def unpack(self) -> str:
        """The commands that check and unpack it."""
        words = {
            "FILE": f"{FOLDER}/{archive_name(self.digest)}",
            "DIGEST": self.digest,
            "SHORT": self.digest[:12],
            "STORAGE": self.storage,
            "SIZE": str(self.size),
            "UNPACKED": str(self.unpacked),
        }
        return re.sub("@([A-Z]+)@", lambda found: words[found[1]], _UNPACK_STORED)

    @property
    def note(self) -> str:
        """Its place, as an annotation."""
        return json.dumps({"storage": self.storage, "size": self.size, "unpacked": self.unpacked})

    def volume(self, claim: str, folder: str, namespace: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The volume, and where the container has it. claim, folder: of the storage."""
        mount = {"name": _VOLUME, "mountPath": FOLDER, "subPath": stored_folder(folder, namespace), "readOnly": True}
        return {"name": _VOLUME, "persistentVolumeClaim": {"claimName": claim}}, mount


def stored_code(digest: str, note: str) -> StoredCode | None:
    """The code of the annotations of a job, or None. Users write annotations."""
    try:
        found = parse_object(note)
    except InvalidJsonError:
        return None
    storage, size, unpacked = found.get("storage"), found.get("size"), found.get("unpacked")
    if not isinstance(storage, str) or not isinstance(size, int) or not isinstance(unpacked, int):
        return None
    digest = digest.removeprefix("sha256:")
    # The digest becomes a part of a path and of a script.
    return StoredCode(digest, storage, size, unpacked) if _DIGEST.fullmatch(digest) else None


def archive_name(digest: str) -> str:
    """The file of an archive on a storage."""
    return f"{digest}.tar.gz"


def stored_folder(folder: str, namespace: str) -> str:
    """The folder of a group's code on a storage. folder: of the user, "" for a shared one."""
    return "/".join(filter(None, (folder, STORED, namespace)))


def part_names() -> Iterator[str]:
    """Yields the name of each part that an archive can have."""
    return map(_part, range(MAX_ARCHIVE // PART + 1))


def part_map(job: str, part: str) -> str:
    """The name of the ConfigMap with a part. job: the job's name in Kubernetes."""
    return f"{job}-code-{part}"


def _part(number: int) -> str:
    return f"part-{number:02}"
