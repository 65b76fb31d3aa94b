"""JSON Schemas of the site's files, derived from the models."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from pai_install.documents.model_introspection import descriptions, models_below
from pai_install.json_schema import DIALECT
from pai_install.site.layout_file import LayoutFile
from pai_install.site.services import Services
from pai_install.site.settings import CHANGES, NO_EFFECT, Settings

NAMES = ("layout", "config", "services-configuration")


def schema(name: str) -> dict[str, Any]:
    """The schema called `name`, one of NAMES. Raises KeyError."""
    made = {"layout": _layout, "config": _config, "services-configuration": _services}[name]()
    return {"$schema": DIALECT, **made}


def _layout() -> dict[str, Any]:
    return {**LayoutFile.model_json_schema(by_alias=True), "title": "layout.yaml"}


def _config() -> dict[str, Any]:
    made = {**_described(Settings), "title": "config.yaml"}
    for key, change in CHANGES.items():
        made["properties"][key]["x-change"] = str(change)
    for key, why in NO_EFFECT.items():
        made["properties"][key] |= {"deprecated": True, "description": f"Accepted, without effect: {why}."}
    return made


def _services() -> dict[str, Any]:
    made = {**_described(Services), "title": "services-configuration.yaml"}
    for described in (made, *made["$defs"].values()):
        properties = described.get("properties", {})
        described["properties"] = {key: _or_nothing(value) for key, value in properties.items()}
    return made


def _described(whole: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model, with the docstrings of its fields."""
    made = whole.model_json_schema(by_alias=True)
    for model in models_below(whole):
        described = made if model is whole else made["$defs"].get(model.__name__, {})
        for name, text in descriptions(model).items():
            key = model.model_fields[name].alias or name
            described.get("properties", {}).get(key, {})["description"] = text
    return made


def _or_nothing(value: dict[str, Any]) -> dict[str, Any]:
    """A key without value counts as not given."""
    return value if {"type": "null"} in value.get("anyOf", ()) else {"anyOf": [value, {"type": "null"}]}
