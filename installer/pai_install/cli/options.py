"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path

import click

site_option = click.option(
    "--site",
    "site_dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="PAI_SITE",
    default=".",
    show_default="$PAI_SITE or the current folder",
    help="Folder with layout.yaml, config.yaml and services-configuration.yaml.",
)
format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to report.",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask; for scripts.")
