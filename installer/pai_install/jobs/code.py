"""The code of a job: an archive in ConfigMaps beside it, unpacked into the work folder before the command. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# bytes of an archive: etcd keeps it, which all groups share
MAX_ARCHIVE = 1024 * 1024
# of one ConfigMap: in base64, with its name, below the limit of ConfigMaps of users
PART = 90 * 1024
FOLDER = "/usr/local/pai/code"
_VOLUME = "code"
# before the command, in the same shell
UNPACK = f"""\
mkdir -p "$PAI_WORK_DIR" && cd "$PAI_WORK_DIR" && cat {FOLDER}/* | tar -xzf - || {{
echo "cannot unpack the code into $PAI_WORK_DIR: the image needs tar, gzip, and a writable folder" >&2
exit 1
}}
"""


@dataclass(frozen=True, slots=True)
class CodeArchive:
    """A tar.gz of files. The same files always give the same archive."""

    content: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """The sha256 of the archive."""
        return hashlib.sha256(self.content).hexdigest()

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


def part_names() -> Iterator[str]:
    """Yields the name of each part that an archive can have."""
    return map(_part, range(MAX_ARCHIVE // PART + 1))


def part_map(job: str, part: str) -> str:
    """The name of the ConfigMap with a part. job: the job's name in Kubernetes."""
    return f"{job}-code-{part}"


def _part(number: int) -> str:
    return f"part-{number:02}"
