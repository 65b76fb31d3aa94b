"""The variables of every role, from its defaults and argument_specs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from pai_install.parts.registry import ROLE_MODELS
from tests.docs.markdown import page, table, with_generated

ROLES: tuple[str, ...] = tuple(model.role for model in ROLE_MODELS)


def roles_page(root: Path) -> str:
    """docs/reference/roles.md."""
    return page("Role variables", _lines(root))


def readme(root: Path, role: str) -> str:
    """roles/ROLE/README.md with its table made anew. Raises OSError where the role has none."""
    text = (root / "roles" / role / "README.md").read_text(encoding="utf-8")
    return with_generated(text, variables(root, role))


def _lines(root: Path) -> Iterator[str]:
    yield "pai-install sets these variables from the site. With plain `ansible-playbook`, you set them. The README of"
    yield "each role describes its changes on a machine."
    for role in ROLES:
        yield ""
        yield f"## {role}"
        yield ""
        yield f"{specification(root, role)['short_description']}. [README](../../roles/{role}/README.md)"
        yield ""
        yield from variables(root, role)


def specification(root: Path, role: str) -> Mapping[str, Any]:
    """The role's argument_specs of its main entry."""
    found = yaml.safe_load((root / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    main: Mapping[str, Any] = found["argument_specs"]["main"]
    return main


def variables(root: Path, role: str) -> Iterator[str]:
    """Yields the lines of the table of a role's variables."""
    defaults = yaml.safe_load((root / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    options = specification(root, role)["options"]
    rows = (
        (f"`{name}`", _type(options[name]), _default(options[name], defaults[name]), _meaning(options[name]))
        for name in defaults
    )
    yield from table(("Variable", "Type", "Default", "Meaning"), rows)


def _type(option: Mapping[str, Any]) -> str:
    return f"list of {option['elements']}" if "elements" in option else str(option["type"])


def _default(option: Mapping[str, Any], value: object) -> str:
    if option.get("required"):
        return "*required*"
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"


def _meaning(option: Mapping[str, Any]) -> str:
    words = [str(option["description"])]
    if "choices" in option:
        words.append(f"One of {', '.join(f'`{choice}`' for choice in option['choices'])}.")
    if "options" in option:
        words.append(f"Keys: {', '.join(_key(name, entry) for name, entry in option['options'].items())}.")
    return " ".join(words)


def _key(name: str, option: Mapping[str, Any]) -> str:
    return f"`{name}`" if option.get("required") else f"`{name}` (optional)"
