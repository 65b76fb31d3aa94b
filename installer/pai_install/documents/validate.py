"""Applies a model to a document and converts pydantic's errors to problems in our words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath, dotted
from pai_install.documents.scalars import shown

Model = TypeVar("Model", bound=BaseModel)
# keys of older formats: they get a message and a remedy of their own instead of "unknown"
Legacy = Mapping[str, tuple[str, str]]

_NEAR = 0.6  # how alike two words are, 0 to 1
# looking for the nearest name takes its time: a mapping with more unknown keys is another file
MAX_REMEDIES = 100

_EXAMPLES = {
    "hostname": "for example hostname: worker1",
    "hostip": "for example hostip: 10.0.0.1",
    "machine-type": "name one of the types in machine-sku",
    "mem": "for example mem: 220Gi",
    "cpu": "for example cpu: {vcore: 24}",
    "vcore": "for example vcore: 24",
    "computing-device.type": "for example type: nvidia.com/gpu",
    "computing-device.model": "for example model: A100",
    "computing-device.count": "for example count: 8",
    "dynamic-volumes.type": "for example type: local-path",
    "user": "the account on the machines, e.g. user: admin",
    "machine-sku": "describe each type of machine below machine-sku",
    "machine-list": "list the machines below machine-list",
}


def validate(
    model: type[Model], document: Document, *, legacy: Legacy | None = None, below: YamlPath = ()
) -> Model | None:
    """Returns the document, or its part below a path, as a `model`. On errors, adds problems and returns None."""
    if document.root is None:
        return None
    try:
        return model.model_validate(document.at(below), context=document)
    except ValidationError as error:
        unknown = 0
        for detail in error.errors(include_url=False, include_input=False):
            unknown += detail["type"] == "extra_forbidden"
            # A guess compares the word with all known ones. A wrong file has thousands of unknown keys.
            _add(model, document, detail, legacy or {}, below, guess=unknown <= MAX_REMEDIES)
        return None


def partly(model: type[Model], document: Document, required: Mapping[str, str]) -> Model | None:
    """Returns the document without invalid top-level keys, for checks across files.

    `required` replaces missing required keys. Adds no problems. Returns None if the rest is still invalid.
    """
    data: dict[str, Any] = {**required, **document.content}
    try:
        return model.model_validate(data)
    except ValidationError as error:
        wrong = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
    kept = {key: value for key, value in data.items() if key not in wrong}
    try:
        return model.model_validate({**required, **kept})
    except ValidationError:
        return None


def _add(
    model: type[BaseModel], document: Document, detail: ErrorDetails, legacy: Legacy, below: YamlPath, *, guess: bool
) -> None:
    # pydantic adds [key] to the place of a key that is wrong itself.
    path: YamlPath = (*below, *(part for part in detail["loc"] if part != "[key]"))
    kind = detail["type"]
    if kind.startswith("site."):
        context = detail.get("ctx", {})
        document.add(path, kind, str(context.get("message", "")), str(context.get("remedy", "")))
    elif kind == "extra_forbidden":
        _add_unknown(known_keys(model, path[len(below) : -1]), document, path, legacy, guess=guess)
    elif kind == "missing":
        message = "has no value" if path in document.marks else "is required"
        document.add(path, "site.missing", message, _example(path))
    else:
        document.add(path, "site.type", *_type_words(kind, document.at(path), detail["msg"]))


def _example(path: YamlPath) -> str:
    """How a value that is missing may be written: by its key, where others are called so by the key above, too."""
    return _EXAMPLES.get(dotted(path[-2:])) or _EXAMPLES.get(str(path[-1]), "add it")


def _type_words(kind: str, value: object, otherwise: str) -> tuple[str, str]:
    """The message and the remedy for a value of the wrong shape."""
    found = shown(value) if isinstance(value, dict | list) else "text" if value is not None else "nothing"
    if kind in {"model_type", "dict_type", "model_attributes_type", "mapping_type"}:
        return f"a mapping is expected, found {found}", "write lines of `key: value` below it, indented"
    if kind in {"list_type", "tuple_type"}:
        return f"a list is expected, found {found}", "write one entry per line below it, each after '- '"
    return otherwise[:1].lower() + otherwise[1:], ""


def _add_unknown(known: list[str], document: Document, path: YamlPath, legacy: Legacy, *, guess: bool) -> None:
    key = str(path[-1])
    if key in legacy:
        document.add(path, "site.legacy-key", *legacy[key])
        return
    remedy = did_you_mean(key, known) if guess else ""
    document.add(path, "site.unknown-key", "is not a known key", remedy)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A remedy that names the nearest known word, or lists them when there are few, or ""."""
    words = sorted(known)
    near = nearest(word, words)
    if near:
        return f"did you mean {near}?"
    return f"known here: {', '.join(words)}" if 0 < len(words) <= 15 else ""


def is_near(word: str, known: Iterable[str]) -> bool:
    """Returns whether any known word may be the nearest to `word`, faster than a full search."""
    letters = set(word)
    for candidate in known:
        # Comparing letters is cheap and rules out most words before the slow comparison.
        if 3 * len(letters.intersection(candidate)) < 2 * len(set(candidate)):
            continue
        matcher = difflib.SequenceMatcher(None, candidate, word[:100])
        if matcher.real_quick_ratio() >= _NEAR and matcher.quick_ratio() >= _NEAR and matcher.ratio() >= _NEAR:
            return True
    return False


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like `word`, or "" when none is."""
    return next(iter(difflib.get_close_matches(word[:100], sorted(known), n=1, cutoff=_NEAR)), "")


def known_keys(model: type[BaseModel], path: YamlPath) -> list[str]:
    """The keys that the mapping at `path` of a `model` file may have.

    Parts of the path that are no field (a position in a list, the name of a machine type) are passed over.
    """
    here = model
    for part in path:
        step = _fields(here).get(str(part)) if isinstance(part, str) else None
        if step is not None:
            here = step
    return [info.alias or name for name, info in here.model_fields.items()]


def _fields(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Those keys of a model that hold, or hold lists or mappings of, another model."""
    found = {(info.alias or name): _models(info.annotation) for name, info in model.model_fields.items()}
    return {key: models[0] for key, models in found.items() if models}


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _models(argument)]
