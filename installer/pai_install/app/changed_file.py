"""Values that replace those of a job file: parameters, name, and virtual cluster. The rest stays as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pai_install.documents.document import Document, Entries
from pai_install.documents.parse import parse_document
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError, argument_error
from pai_install.jobs.read import JobReading, read_job_text
from pai_install.jobs.template import parameters_of
from pai_install.site_edit.spans import EditError
from pai_install.site_edit.values import with_value

MAX_VALUE = 4_000
# protocol -> key of the job's name
_NAME_KEYS = {"openpai-v1": "jobName", "openpai-v2": "name"}


def read_settings(words: Sequence[str]) -> Mapping[str, str]:
    """Values by key. words: KEY=VALUE. Raises PaiError."""
    found: dict[str, str] = {}
    for word in words:
        key, mark, value = word.partition("=")
        if not mark or not key:
            raise argument_error(f"cannot read --set {word!r}: it is not KEY=VALUE", "write --set KEY=VALUE")
        found[key] = value
    return found


def changed_file(reading: JobReading, settings: Mapping[str, str], name: str = "", cluster: str = "") -> JobReading:
    """The reading of the file with values of parameters, and another name and virtual cluster, "" for the file's.

    A file with errors stays as it is. Raises PaiError for an unknown parameter, and for a file that has no place for
    the value.
    """
    if reading.job is None or not (settings or name or cluster):
        return reading
    content = reading.text
    known = [one.name for one in parameters_of(content)]
    try:
        for key, value in settings.items():
            if key not in known:
                remedy = did_you_mean(key, known) if known else "leave out --set: the file has no parameters"
                raise argument_error(f"cannot set {key!r}: it is no parameter of {reading.file}", remedy)
            content = with_value(content, ("parameters",), key, _usable(key, value))
        if name:
            content = with_value(content, (), _name_key(reading), _usable("name", name))
        if cluster:
            content = _in_cluster(content, reading, _usable("virtual cluster", cluster))
    except EditError as error:
        raise PaiError(
            f"cannot change {reading.file}: line {error.line} {error.message}",
            code="job-file-fixed",
            remedy="write the values into the file",
            exit_code=ExitCode.USAGE,
        ) from error
    return read_job_text(content, Path(reading.file))


def _usable(key: str, value: str) -> str:
    if len(value) > MAX_VALUE or not all(letter.isprintable() or letter in "\n\t" for letter in value):
        raise argument_error(
            f"cannot set {key!r}: the value has control characters or is longer than {MAX_VALUE} characters",
            "choose another value",
        )
    return value


def _in_cluster(content: str, reading: JobReading, cluster: str) -> str:
    if reading.protocol == "openpai-v1":
        return with_value(content, (), "virtualCluster", cluster)
    if reading.protocol != "openpai-v2":
        raise argument_error(
            f"cannot set the virtual cluster of {reading.file}: it is an object of Kubernetes",
            "write its queue into the file",
        )
    document = Document("", of="job")
    parse_document(content, document)
    if isinstance(document.content.get("defaults"), Entries) and document.content["defaults"]:
        return with_value(content, ("defaults",), "virtualCluster", cluster)
    return with_value(content, (), "defaults", {"virtualCluster": cluster})


def _name_key(reading: JobReading) -> str:
    key = _NAME_KEYS.get(reading.protocol or "")
    if key is None:
        raise argument_error(
            f"cannot rename the job of {reading.file}: it is an object of Kubernetes",
            "write generateName in its metadata",
        )
    return key
