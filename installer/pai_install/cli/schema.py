"""`pai-install schema`: the JSON Schema of a site's file, for editors and other tools."""

from __future__ import annotations

import json

import click

from pai_install.site.schema import NAMES, schema


@click.command
@click.argument("name", type=click.Choice(NAMES))
def command(*, name: str) -> int:
    """Print the JSON Schema of a site's file, or of what validate reports."""
    click.echo(json.dumps(schema(name), indent=2))
    return 0
