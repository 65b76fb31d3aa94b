"""Rules of a site's own for Prometheus: their structure. Prometheus itself judges their expressions."""

from __future__ import annotations

import re
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from pai_install.documents.scalars import invalid, shown
from pai_install.site.services.section import read_prose
from pai_install.system.yaml import load_untrusted_yaml

_MOST_BYTES, _MOST_RULES = 256 * 1024, 1000
_DURATION = r"^([0-9]+(ms|[smhdwy]))+$|^0$"
_OURS = "pai-"
_REMEDY = "write groups as in a rule file of Prometheus, with name and rules"

Duration = Annotated[str, Field(pattern=_DURATION)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Words = dict[str, str | bool | int | float]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)


class _Rule(_Strict):
    alert: Name | None = None
    record: Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")] | None = None
    expr: Name | Annotated[str, Field(min_length=1)]
    for_: Annotated[Duration, Field(alias="for")] = "0s"
    keep_firing_for: Duration = "0s"
    labels: Words = {}
    annotations: Words = {}

    @model_validator(mode="after")
    def _one_kind(self) -> _Rule:
        if (self.alert is None) == (self.record is None):
            raise ValueError("a rule has either alert or record")
        return self


class _Group(_Strict):
    name: Name
    interval: Duration = "1m"
    limit: Annotated[int, Field(ge=0)] = 0
    query_offset: Duration = "0s"
    labels: Words = {}
    rules: tuple[_Rule, ...]


class _File(_Strict):
    groups: tuple[_Group, ...]


def read_rules(value: object) -> str:
    """Returns the text if it has the structure of a rule file. Raises a problem at its place otherwise."""
    # One rule file with an error makes Prometheus refuse its whole configuration.
    text = read_prose(value)
    if len(text.encode()) > _MOST_BYTES:
        raise invalid("rules", f"rules have more than {_MOST_BYTES // 1024} KiB", "remove rules")
    try:
        groups = _File.model_validate(load_untrusted_yaml(text)).groups
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise invalid("rules", f"is no rule file of Prometheus: {_cause(error)}", _REMEDY) from None
    names = [group.name for group in groups]
    for name in names:
        if names.count(name) > 1 or name.startswith(_OURS):
            why = f"group {shown(name)} has a name that another group has"
            raise invalid("rules", why, f"choose another name, which does not start with {_OURS}")
    if sum(len(group.rules) for group in groups) > _MOST_RULES:
        raise invalid("rules", f"there are more than {_MOST_RULES} rules", "remove rules")
    return text


def _cause(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first: Any = error.errors(include_url=False)[0]
        place = ".".join(str(word) for word in first["loc"])
        return shown(f"{place}: {first['msg']}" if place else first["msg"])
    mark = getattr(error, "problem_mark", None)
    text = re.sub(r"\s+", " ", getattr(error, "problem", None) or str(error))
    return shown(f"line {mark.line + 1} of the block: {text}" if mark is not None else text)


OwnRules = Annotated[str, BeforeValidator(read_rules), WithJsonSchema({"type": "string"})]
