"""The file of a job, kept beside the job: masked, compressed, in an annotation or a ConfigMap. Pure."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import re
import zlib
from collections.abc import Mapping, MutableMapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.jobs.compile import names
from pai_install.jobs.read import MAX_BYTES
from pai_install.kube.objects import JsonObject, child, text

# annotation with the compressed file, and key of the ConfigMap for a larger one
NOTE, KEY = "pai-install/job-file", "job-file.gz"
MASK = "******"
# bytes of a compressed file in an annotation: all annotations of an object have 256 KiB together
_MAX_NOTE = 32 * 1024
# in place of the file: it is in the ConfigMap
_BESIDE = "beside"
_SUFFIX = ".job-file"
_LOGIN = ("password", "username")
# a file without these words has no secrets
_SECRET = re.compile(r"\bsecrets\b|\bauth\b|\bSecret\b")


def masked(content: str) -> str:
    """The file without the values of its secrets. A file without secrets stays as it is."""
    if not _SECRET.search(content):
        return content
    reader = YAML(typ="rt")
    reader.preserve_quotes = True
    reader.width = 4096
    try:
        documents = list(reader.load_all(content))
        if not sum(_mask(one) for one in documents):
            return content
        output = io.StringIO()
        reader.dump_all(documents, output)
    except (YAMLError, RecursionError, ValueError):
        # OpenPAI's protocol 1 permits escapes that are not YAML. It has no secrets.
        return "" if _SECRET.search(content) else content
    return output.getvalue()


def has_mask(content: str) -> bool:
    """Whether a kept file lacks its secrets, so that it cannot be submitted again."""
    return MASK in content


def _mask(document: object) -> int:
    """Masks the secrets of a document in place. Returns their number."""
    if not isinstance(document, MutableMapping):
        return 0
    if document.get("kind") == "Secret":
        return sum(_mask_values(document.get(key)) for key in ("data", "stringData"))
    found = _mask_values(document.get("secrets"))
    prerequisites = document.get("prerequisites")
    for one in prerequisites if isinstance(prerequisites, list) else ():
        auth = one.get("auth") if isinstance(one, Mapping) else None
        if isinstance(auth, MutableMapping):
            found += sum(_mask_login(auth, key) for key in _LOGIN)
    return found


def _mask_login(auth: MutableMapping[str, Any], key: str) -> int:
    """A reference such as <% $secrets.NAME %> is no secret itself."""
    value = auth.get(key)
    if value is None or (isinstance(value, str) and "$secrets" in value):
        return 0
    auth[key] = MASK
    return 1


def _mask_values(entries: object) -> int:
    if not isinstance(entries, MutableMapping):
        return 0
    for key in entries:
        entries[key] = MASK
    return len(entries)


def with_file(item: JsonObject, content: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A job with its masked file, and the ConfigMap for a file that no annotation can hold."""
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
        content = unpacking.decompress(compressed, MAX_BYTES * 4)
        return content.decode() if unpacking.eof else None
    except (binascii.Error, zlib.error, ValueError):
        return None
