"""The base of all sections of services-configuration.yaml, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from pai_install.documents.document import Document, Entries
from pai_install.documents.problem import YamlPath
from pai_install.documents.scalars import (
    invalid,
    plain_data,
    read_count,
    read_port,
    read_text,
    read_whole,
    read_word_boolean,
    shown,
)
from pai_install.documents.validate import MAX_REMEDIES, did_you_mean
from pai_install.site.field_metadata import keys_of
from pai_install.site.fields import FrozenModel
from pai_install.site.names import read_url
from pai_install.site.secret import SECRET_SCHEMA, read_quiet_secret

_NUMBER: dict[str, Any] = {"type": ["integer", "string"]}
_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}


class Section(FrozenModel):
    """A mapping of services-configuration.yaml. An unknown key causes a warning. A key without value is absent.

    OpenPAI ignored unknown keys, so they are never errors.
    """

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def keep_known(cls, data: object, info: ValidationInfo) -> object:
        """Refuses values that are no mapping, reports unknown keys, and drops them and keys without value."""
        data = {} if data is None else read_mapping(data)
        known = keys_of(cls)
        if isinstance(data, Entries) and isinstance(info.context, Document):
            for number, key in enumerate(sorted(data.keys() - known)):
                # A remedy compares the key with all known ones. A wrong file has thousands of unknown keys.
                remedy = did_you_mean(key, known) if number < MAX_REMEDIES else ""
                cls.report_unknown(info.context, (*data.path, key), remedy)
        return {key: value for key, value in data.items() if key in known and value is not None and value != ""}

    @classmethod
    def report_unknown(cls, document: Document, path: YamlPath, remedy: str) -> None:
        """Adds the warning about a key that is not known."""
        document.add(path, "site.unknown-key", "is not a known key and has no effect", remedy, severity="warning")

    @property
    def given(self) -> tuple[str, ...]:
        """The keys that the file has, as written there, in the model's order."""
        fields = type(self).model_fields.items()
        return tuple(info.alias or name for name, info in fields if name in self.model_fields_set)


def report_missing(data: object, info: ValidationInfo, *keys: str) -> None:
    """Warns of missing keys that OpenPAI's own services needed to start. Called by a before-validator of the model."""
    if isinstance(data, Entries) and isinstance(info.context, Document):
        for key in keys:
            if data.get(key) in (None, ""):
                message = f"{key} is missing: OpenPAI needs it"
                info.context.add(data.path, "site.missing", message, "add it", severity="warning")


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class KebabSection(Section):
    """A section with dashes in its keys: server_port is `server-port`."""

    model_config = ConfigDict(alias_generator=_kebab)


class OpaqueSection(FrozenModel):
    """A section that is kept unchanged. The places of its content are those of the document."""

    content: Any = Field(repr=False)
    """Plain data; may hold secrets."""


def read_mapping(value: object) -> dict[Any, Any]:
    """Refuses values that are no mapping."""
    if isinstance(value, dict):
        return value
    found = shown(value) if isinstance(value, list) else "text"
    raise invalid("type", f"a mapping is expected, found {found}", "write lines of `key: value`")


def _keep_mapping(value: object) -> object:
    return value if isinstance(value, OpaqueSection) else OpaqueSection(content=plain_data(read_mapping(value)))


def choice(*words: str) -> BeforeValidator:
    """One of these words."""

    def read(value: object) -> str:
        word = read_text(value)
        if word not in words:
            raise invalid("choice", f"{shown(word)} is not one of {', '.join(words)}", "choose one of them")
        return word

    return BeforeValidator(read)


def _read_list(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise invalid("type", f"a list is expected, found {shown(value)}", "write one entry per line, each after '- '")
    return value


def _read_node_port(value: object) -> int:
    port = read_port(value)
    if not 30000 <= port <= 32767:
        raise invalid("port", f"{port} is not a port for a NodePort service", "use 30000 to 32767")
    return port


def read_prose(value: object) -> str:
    """Text of any number of lines."""
    if isinstance(value, dict | list):
        raise invalid("type", f"text is expected, found {shown(value)}", "write text, or a block after '|'")
    return str(value)


def _or_list(read: Callable[[object], str]) -> Callable[[object], tuple[str, ...]]:
    def read_words(value: object) -> tuple[str, ...]:
        return tuple(read(item) for item in (value if isinstance(value, list | tuple) else read(value).split(",")))

    return read_words


ListOf = BeforeValidator(_read_list)
MappingOf = BeforeValidator(read_mapping)
Word = Annotated[str, BeforeValidator(read_text), WithJsonSchema(_SCALAR)]
Prose = Annotated[str, BeforeValidator(read_prose), WithJsonSchema(_SCALAR)]
Flag = Annotated[bool, BeforeValidator(read_word_boolean), WithJsonSchema({"type": ["boolean", "string"]})]
Whole = Annotated[int, BeforeValidator(read_whole), WithJsonSchema(_NUMBER)]
Count = Annotated[int, BeforeValidator(read_count), WithJsonSchema(_NUMBER)]
Port = Annotated[int, BeforeValidator(read_port), WithJsonSchema(_NUMBER)]
NodePort = Annotated[int, BeforeValidator(_read_node_port), WithJsonSchema(_NUMBER)]
Url = Annotated[str, BeforeValidator(read_url), WithJsonSchema({"type": "string"})]
Words = Annotated[tuple[Word, ...], ListOf]
WordOrWords = Annotated[tuple[str, ...], BeforeValidator(_or_list(read_text)), WithJsonSchema({})]
Hidden = Annotated[SecretStr, BeforeValidator(read_quiet_secret), WithJsonSchema(SECRET_SCHEMA)]
KeptMapping = Annotated[OpaqueSection, BeforeValidator(_keep_mapping), WithJsonSchema({"type": "object"})]
Free = Annotated[Any, BeforeValidator(plain_data), WithJsonSchema({})]
