"""The file of a job, kept with the job: compressed, in an annotation or a ConfigMap. Pure."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from typing import Any

from pai_install.jobs.compile import names
from pai_install.kube.objects import JsonObject, child, text

# annotation with the compressed file, and key of the ConfigMap for a larger one
NOTE, KEY = "pai-install/job-file", "job-file.gz"
# bytes of a job file: no API server keeps a job of that size
MAX_BYTES = 1024 * 1024
# bytes of a compressed file in an annotation: all annotations of an object have 256 KiB together
_MAX_NOTE = 32 * 1024
# in place of the file: it is in the ConfigMap
_BESIDE = "beside"
_SUFFIX = ".job-file"


def with_file(item: JsonObject, content: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A job with its masked file, and the ConfigMap for a file that no annotation can hold."""
    # Without a time, the same file gives the same object.
    packed = base64.b64encode(gzip.compress(content.encode(), mtime=0)).decode()
    fits = len(packed) * 3 // 4 <= _MAX_NOTE
    metadata = child(item, "metadata")
    notes = {**child(metadata, "annotations"), NOTE: packed if fits else _BESIDE}
    noted = {**item, "metadata": {**metadata, "annotations": notes}}
    return noted, None if fits else _config_map(metadata, packed)


def _config_map(job: JsonObject, packed: str) -> dict[str, Any]:
    labels = {name: word for name, word in child(job, "labels").items() if name in (names.USER, names.GROUP)}
    metadata = {"name": config_map_of(text(job.get("name"))), "namespace": job.get("namespace"), "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": {KEY: packed}}


def config_map_of(label: str) -> str:
    """The name of the ConfigMap of a job. label: its name in Kubernetes."""
    return f"{label}{_SUFFIX}"


def is_beside(job: JsonObject) -> bool:
    """Whether the file of a job is in a ConfigMap."""
    return packed_file(job) == _BESIDE


def file_of(job: JsonObject, beside: JsonObject | None = None) -> str | None:
    """The masked file of a job, or None for a job without one. beside: its ConfigMap."""
    return unpacked(text(child(beside or {}, "binaryData").get(KEY)) if is_beside(job) else packed_file(job))


def packed_file(job: JsonObject) -> str:
    """The annotation with the compressed file, or ""."""
    return text(child(job, "metadata", "annotations").get(NOTE))


def unpacked(packed: str) -> str | None:
    """The file in an annotation or a ConfigMap, or None without a readable one."""
    try:
        compressed = base64.b64decode(packed, validate=True)
        unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        # A few bytes of gzip may stand for gigabytes. Any member may write the annotation.
        content = unpacking.decompress(compressed, MAX_BYTES * 4)
        return content.decode() if unpacking.eof else None
    except (binascii.Error, zlib.error, ValueError):
        return None
