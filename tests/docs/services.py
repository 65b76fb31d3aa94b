"""docs/reference/services.md: every section of services-configuration.yaml and every key in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from pai_install.documents.model_introspection import descriptions, models_in, parts
from pai_install.site.field_metadata import NotYet, WithoutEffect, marker_of
from pai_install.site.services import Services
from pai_install.site.services.model import status_of
from pai_install.site.services.section import OpaqueSection
from tests.docs.markdown import page, table

_HEAD = (
    "A key that is not listed gives a warning with the nearest name, never an error: OpenPAI ignored it. A key without",
    "value counts as not given. Secrets are written as in config.yaml ([The site](../site.md#secrets)); in plain text",
    "they are accepted here without a warning, as OpenPAI writes them.",
)


def services_page() -> str:
    """docs/reference/services.md."""
    return page("Sections of services-configuration.yaml", [*_HEAD, "", *_overview(), *_sections()])


def _overview() -> Iterator[str]:
    rows = [
        (f"`{info.alias}`", descriptions(Services).get(name, ""), _status(name, info))
        for name, info in Services.model_fields.items()
    ]
    yield from table(("Section", "Meaning", "Effect"), rows)


def _status(name: str, info: FieldInfo) -> str:
    status = status_of(name)
    if status is None:
        model = next(iter(models_in(info.annotation)), None)
        return "partly" if model is not None and any(_idle(info) for info in model.model_fields.values()) else "yes"
    return f"{'not yet' if marker_of(info, NotYet) else 'none'}: {status}"


def _idle(info: FieldInfo) -> str:
    """Why a key has no effect, or no effect yet, as a sentence, or ""."""
    without, not_yet = marker_of(info, WithoutEffect), marker_of(info, NotYet)
    return f"Without effect: {without.why}." if without else f"Not yet: {not_yet.sentence}." if not_yet else ""


def _sections() -> Iterator[str]:
    for info in Services.model_fields.values():
        models = list(models_in(info.annotation))
        if not models or models[0] is OpaqueSection:
            continue
        yield from ("", f"## {info.alias}", "")
        rows = list(_keys(models[0]))
        if any(meaning for *_, meaning in rows):
            yield from table(("Key", "Default", "Meaning"), rows)
        else:
            yield f"Known keys: {', '.join(key for key, *_ in rows)}."


def _keys(model: type[BaseModel], before: str = "", above: tuple[type, ...] = ()) -> Iterator[tuple[str, str, str]]:
    for name, info in model.model_fields.items():
        key = f"{before}{info.alias or name}"
        inner = next((found for found in models_in(info.annotation) if found not in (model, *above)), None)
        if key != "service_type":
            meaning = " ".join(filter(None, (descriptions(model).get(name, ""), _idle(info))))
            yield f"`{key}`", _default(info), meaning
        if inner is not None:
            yield from _keys(inner, f"{key}{_step(info.annotation)}.", (model, *above))


def _step(annotation: object) -> str:
    """How the keys below are reached: through any entry of a list, or any name."""
    origins = {get_origin(part) for part in parts(annotation)}
    return "[]" if tuple in origins else ".NAME" if dict in origins else ""


def _default(info: FieldInfo) -> str:
    if SecretStr in set(parts(info.annotation)):
        return "*secret*"
    if info.is_required():
        return "required"
    default = info.get_default(call_default_factory=True)
    if default is None or default in ((), {}) or isinstance(default, BaseModel):
        return ""
    return f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"
