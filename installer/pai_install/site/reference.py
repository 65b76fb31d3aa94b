"""The table of settings in docs/site.md, made from the model: `python -m pai_install.site.reference FILE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from pai_install.site.legacy import NO_EFFECT
from pai_install.site.settings import Settings
from pai_install.system.files import write_atomic

BEGIN, END = "<!-- settings: begin", "<!-- settings: end -->"


def settings_table() -> Iterator[str]:
    """Yields Markdown: the settings that count, then those without effect."""
    yield "| Key | Default | Meaning |"
    yield "|---|---|---|"
    for name, info in Settings.model_fields.items():
        key = info.alias or name
        if key not in NO_EFFECT:
            default = None if info.is_required() else info.get_default(call_default_factory=True)
            yield f"| `{key}` | {_default(default, required=info.is_required())} | {info.description} |"
    yield ""
    yield "Accepted without effect:"
    yield ""
    yield "| Key | Why |"
    yield "|---|---|"
    for key, why in NO_EFFECT.items():
        yield f"| `{key}` | {why} |"


def with_table(text: str) -> str:
    """The page with the table between its marks made anew."""
    head, _, rest = text.partition(BEGIN)
    mark, _, rest = rest.partition("\n")
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}{mark}\n" + "\n".join(settings_table()) + f"\n{END}{tail}"


def _default(value: object, *, required: bool) -> str:
    if required:
        return "*required*"
    empty = value is None or value in ((), {})
    return "" if empty else f"`{json.dumps(value)}`" if not isinstance(value, str) else f"`{value}`"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    write_atomic(page, with_table(page.read_text(encoding="utf-8")))
