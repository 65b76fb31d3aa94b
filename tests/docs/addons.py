"""The table of keys in docs/contributing/add-on.md."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from pai_install.parts.addon import AddonModule, AddonPort, Definition, When
from tests.docs.markdown import table, with_generated

_PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("when", When),
    ("ports", AddonPort),
    ("kernel_modules", AddonModule),
)


def with_addon_keys(text: str) -> str:
    """The page with the table of the keys of addon.yml made anew."""
    return with_generated(text, table(("Key", "Meaning"), _rows()))


def _rows() -> Iterator[tuple[str, str]]:
    for key, info in Definition.model_fields.items():
        yield f"`{key}`", info.description or ""
    for part, model in _PARTS:
        for key, info in model.model_fields.items():
            if info.description:
                yield f"`{part}.{key}`", info.description
