"""Messages of verbs beside their result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click


def say(line: str) -> None:
    """Tells the user something while the verb runs; stdout is for its result."""
    click.echo(line, err=True)


def tell_result(output_format: str, data: Mapping[str, Any], text: str) -> None:
    """Prints what a verb found out, in the format that was asked for. text: with its last line's end."""
    click.echo(f"{json.dumps(data, indent=2)}\n" if output_format == "json" else text, nl=False)
