"""The types of the fields of OpenPAI's job files, and the base of the models made of them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, ValidationInfo, model_validator

from pai_install.documents.document import Document, Entries
from pai_install.documents.scalars import MAX_COUNT, invalid, read_text, read_whole, read_word_boolean, shown
from pai_install.documents.validate import did_you_mean
from pai_install.site.fields import FrozenModel

MAX_RETRIES = 1000
MAX_PORTS = 100
# more than any machine has
_MAX_MEGABYTES = 2**30
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join("MB" if part == "mb" else part.capitalize() for part in tail)


class JobModel(FrozenModel):
    """A mapping of a job's file; memory_mb is its memoryMB. A key without value counts as not given."""

    model_config = ConfigDict(alias_generator=_camel, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def drop_empty(cls, data: object) -> object:
        """Removes known keys whose value is null or ""."""
        if not isinstance(data, Entries):
            return data
        known = {info.alias or name for name, info in cls.model_fields.items()}
        return {key: value for key, value in data.items() if key not in known or value not in (None, "")}


def refused(message: str, remedy: str) -> BeforeValidator:
    """A field that OpenPAI knows and that nothing here does: to leave it out silently would change the job."""

    def refuse(value: object) -> None:
        del value
        raise invalid("unsupported", message, remedy)

    return BeforeValidator(refuse)


def between(least: int, most: int, what: str) -> BeforeValidator:
    """A whole number of these. what: for messages."""

    def read(value: object) -> int:
        number = read_whole(value)
        if not least <= number <= most:
            raise invalid("number", f"{number} is no {what}", f"write {least} to {most}")
        return number

    return BeforeValidator(read)


def one_of(*words: str) -> BeforeValidator:
    """One of these words."""

    def read(value: object) -> str:
        word = read_text(value)
        if word not in words:
            near = did_you_mean(word, words)
            raise invalid("choice", f"{shown(word)} is not one of {', '.join(words)}", near)
        return word

    return BeforeValidator(read)


def matching(pattern: str, most: int, letters: str) -> BeforeValidator:
    """A name. letters: what may be in it, in words."""

    def read(value: object) -> str:
        word = read_text(value)
        if re.fullmatch(pattern, word) is None:
            raise invalid("name", f"{shown(word)} is not a name here", f"use {letters}")
        if len(word) > most:
            raise invalid("name", f"has {len(word)} characters, and {most} are the most", "write a shorter one")
        return word

    return BeforeValidator(read)


def _read_ending(value: object) -> int:
    number = read_whole(value)
    if number != -1 and not 1 <= number <= MAX_COUNT:
        raise invalid("number", f"{number} is no number of instances", "write 1 or more, or -1 for none")
    return number


def read_script(value: object) -> str:
    """Commands of any number of lines; a Text stays one, so that what is in it has a place."""
    if isinstance(value, dict | list):
        raise invalid("type", f"text is expected, found {shown(value)}", "quote a command that starts with { or [")
    text = value if isinstance(value, str) else str(value)
    if not text.strip():
        raise invalid("empty-value", "is empty", "write a command")
    if _CONTROL.search(text):
        raise invalid("characters", "holds control characters", "write it as text")
    return text


def _read_scripts(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise invalid("type", "a list is expected, found text", "write one command per line, each after '- '")
    if not value:
        raise invalid("empty-value", "is empty", "write a command, or remove it")
    return value


def read_image(value: object) -> str:
    """The address of an image, as a container runtime takes it."""
    word = read_text(value)
    if _IMAGE.fullmatch(word) is None:
        raise invalid("image", f"{shown(word)} is no image", "write it as docker pull takes it, e.g. python:3.12")
    return word


def _read_mount_path(value: object) -> str:
    word = read_text(value)
    parts = word.split("/")
    if not word.startswith("/") or word.strip("/") == "" or ".." in parts or "." in parts or ":" in word:
        raise invalid("path", f"{shown(word)} is no folder for it", "write an absolute path, e.g. /mnt/data")
    return "/" + "/".join(part for part in parts if part)


def _read_variables(value: object, info: ValidationInfo) -> dict[str, str]:
    """Names and values of variables of the environment."""
    if not isinstance(value, dict):
        raise invalid("type", f"a mapping is expected, found {shown(value)}", "write names and values")
    for key, item in value.items():
        wrong = _wrong_variable(str(key), item)
        if wrong and isinstance(info.context, Document) and isinstance(value, Entries):
            info.context.add((*value.path, str(key)), "site.variable", *wrong)
    return {str(key): "" if item is None else str(item) for key, item in value.items()}


def _wrong_variable(name: str, value: object) -> tuple[str, str] | None:
    if _WORD.fullmatch(name) is None:
        return "is no name of a variable", "use letters, digits and '_'; no digit first"
    if name.startswith("PAI_"):
        return "is set by the cluster itself", "choose a name that does not start with PAI_"
    if isinstance(value, dict | list):
        return f"text is expected, found {shown(value)}", "write text"
    return ("holds control characters", "write it as text") if _CONTROL.search(str(value)) else None


def _read_free(value: object) -> object:
    if not isinstance(value, dict):
        raise invalid("type", f"a mapping is expected, found {shown(value)}", "write lines of `key: value`")
    return value


Whole = Annotated[int, BeforeValidator(read_whole)]
Text255 = Annotated[str, BeforeValidator(read_text)]
Instances = Annotated[int, between(1, MAX_COUNT, "number of instances")]
Cores = Annotated[int, between(1, MAX_COUNT, "number of cores")]
Megabytes = Annotated[int, between(1, _MAX_MEGABYTES, "amount of memory in MB")]
Gpus = Annotated[int, between(0, MAX_COUNT, "number of GPUs")]
Retries = Annotated[int, between(0, MAX_RETRIES, "number of retries")]
PortCount = Annotated[int, between(1, MAX_PORTS, "number of ports")]
Ending = Annotated[int, BeforeValidator(_read_ending)]
Script = Annotated[Any, BeforeValidator(read_script)]
Scripts = Annotated[tuple[Script, ...], BeforeValidator(_read_scripts)]
Image = Annotated[str, BeforeValidator(read_image)]
MountPath = Annotated[str, BeforeValidator(_read_mount_path)]
Variables = Annotated[dict[str, str], BeforeValidator(_read_variables)]
Free = Annotated[Any, BeforeValidator(_read_free)]
Flag = Annotated[bool, BeforeValidator(read_word_boolean)]
