"""The tables of settings in docs/site.md."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic.fields import FieldInfo

from pai_install.documents.model_introspection import descriptions
from pai_install.site.settings import CHANGES, NO_EFFECT, Settings
from tests.docs.markdown import table, with_generated


def with_settings(text: str) -> str:
    """The page with its tables made anew. Raises ValueError where it has no marks."""
    return with_generated(text, _settings())


def _settings() -> Iterator[str]:
    meaning = {Settings.model_fields[name].alias or name: text for name, text in descriptions(Settings).items()}
    fields = {info.alias or name: info for name, info in Settings.model_fields.items()}
    counting = {key: info for key, info in fields.items() if key not in NO_EFFECT}
    rows = (_row(key, info, meaning[key]) for key, info in counting.items())
    yield from table(("Key", "Default", "Meaning", "A change"), rows)
    yield ""
    yield "Accepted without effect:"
    yield ""
    yield from table(("Key", "Why"), ((f"`{key}`", why) for key, why in NO_EFFECT.items()))


def _row(key: str, info: FieldInfo, meaning: str) -> tuple[str, str, str, str]:
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    return f"`{key}`", _default(default, required=info.is_required()), meaning, str(CHANGES[key])


def _default(value: object, *, required: bool) -> str:
    if required:
        return "*required*"
    empty = value is None or value in ((), {})
    return "" if empty else f"`{json.dumps(value)}`" if not isinstance(value, str) else f"`{value}`"
