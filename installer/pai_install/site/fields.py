"""The types of the fields in a site's files, and the base of the models made of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, WithJsonSchema, model_validator

from pai_install.documents import scalars
from pai_install.documents.document import Document, Entries
from pai_install.site import names

_ANY_BOOLEAN = WithJsonSchema({"enum": [True, False, "true", "false"]})

Word = Annotated[str, BeforeValidator(scalars.read_text), WithJsonSchema({"type": ["string", "number"]})]
Boolean = Annotated[bool, BeforeValidator(scalars.read_boolean), _ANY_BOOLEAN]
StrictBoolean = Annotated[bool, BeforeValidator(scalars.read_strict_boolean), WithJsonSchema({"type": "boolean"})]
Whole = Annotated[int, BeforeValidator(scalars.read_whole)]
Count = Annotated[int, BeforeValidator(scalars.read_count), WithJsonSchema({"type": "integer", "minimum": 1})]
MachineCount = Annotated[
    int,
    BeforeValidator(scalars.read_machine_count),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": scalars.MAX_COUNT}),
]
Port = Annotated[
    int,
    BeforeValidator(scalars.read_port),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 65535}),
]
Memory = Annotated[
    int,
    BeforeValidator(scalars.read_memory),
    WithJsonSchema({"type": "string", "description": "A Kubernetes quantity, e.g. 220Gi", "examples": ["220Gi"]}),
]
Size = Annotated[
    int,
    BeforeValidator(scalars.read_size),
    WithJsonSchema({"type": "string", "description": "A Kubernetes quantity, e.g. 200Gi", "examples": ["200Gi"]}),
]
HostName = Annotated[
    str,
    BeforeValidator(names.read_host_name),
    WithJsonSchema({"type": "string", "maxLength": 253, "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}),
]
IpAddress = Annotated[str, BeforeValidator(names.read_ip), WithJsonSchema({"type": "string", "format": "ipv4"})]
Cidr = Annotated[
    str,
    BeforeValidator(names.read_cidr),
    WithJsonSchema({"type": "string", "examples": ["10.200.0.0/13"]}),
]
PlainUrl = Annotated[str, BeforeValidator(names.read_plain_url), WithJsonSchema({"type": "string", "format": "uri"})]
Url = Annotated[str, BeforeValidator(names.read_url), WithJsonSchema({"type": "string", "format": "uri"})]
IssuerUrl = Annotated[str, BeforeValidator(names.read_issuer), WithJsonSchema({"type": "string", "format": "uri"})]
AbsolutePath = Annotated[
    str, BeforeValidator(names.read_absolute_path), WithJsonSchema({"type": "string", "pattern": "^/"})
]
CacheFolder = Annotated[
    str, BeforeValidator(names.read_cache_folder), WithJsonSchema({"type": "string", "pattern": "^/"})
]
ContainerdRoot = Annotated[
    str, BeforeValidator(names.read_containerd_root), WithJsonSchema({"type": "string", "pattern": "^/"})
]
DataRoot = Annotated[str, BeforeValidator(names.read_data_root), WithJsonSchema({"type": "string", "pattern": "^/"})]
NoProxy = Annotated[str, BeforeValidator(names.read_no_proxy), WithJsonSchema({"type": "string"})]
FlagValue = Annotated[str, BeforeValidator(names.read_flag_value), WithJsonSchema({"type": ["string", "number"]})]
Server = Annotated[str, BeforeValidator(names.read_server)]
UserName = Annotated[str, BeforeValidator(names.read_user_name), WithJsonSchema({"type": "string"})]
Resource = Annotated[
    str,
    BeforeValidator(names.read_resource),
    WithJsonSchema({"type": "string", "examples": ["nvidia.com/gpu"]}),
]
Registry = Annotated[str, BeforeValidator(names.read_registry)]
FlagName = Annotated[str, BeforeValidator(names.read_flag_name)]
KernelParameter = Annotated[str, BeforeValidator(names.read_kernel_parameter)]
LabelKey = Annotated[str, BeforeValidator(names.read_label_key)]
LabelValue = Annotated[str, BeforeValidator(names.read_label_value), WithJsonSchema({"type": ["string", "number"]})]
Taint = Annotated[str, BeforeValidator(names.read_taint), WithJsonSchema({"type": "string"})]
FreeMapping = Annotated[dict[str, Any], BeforeValidator(scalars.plain_data), WithJsonSchema({"type": "object"})]


class FrozenModel(BaseModel):
    """A value that never changes and knows all its fields."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", hide_input_in_errors=True)


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class FileModel(FrozenModel):
    """A mapping in a file. A key without a value counts as not given, with a warning."""

    @model_validator(mode="before")
    @classmethod
    def drop_empty(cls, data: object, info: ValidationInfo) -> object:
        """Removes keys with value null or "" before the fields are read."""
        if not isinstance(data, Entries):
            return data
        known = {info.alias or name for name, info in cls.model_fields.items()}
        # Unknown keys stay here, so that the model still reports them.
        kept = {key: value for key, value in data.items() if key not in known or (value is not None and value != "")}
        if len(kept) < len(data) and isinstance(info.context, Document):
            # A required key without value is reported as missing already. A note about it would be the second problem.
            required = {info.alias or name for name, info in cls.model_fields.items() if info.is_required()}
            for key in data.keys() - kept.keys() - required:
                if data[key] is None:
                    _note_empty(info.context, data, key)
        return kept


def _note_empty(document: Document, data: Entries, key: str) -> None:
    document.add(
        (*data.path, key),
        "site.empty-value",
        "has no value and counts as not given",
        "give it a value or remove the line",
        severity="warning",
    )


class KebabModel(FileModel):
    """A mapping with dashes in its keys in the file: machine_type is `machine-type`."""

    model_config = ConfigDict(alias_generator=_kebab)
