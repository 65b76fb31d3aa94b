"""`pai-install init`: a commented site to start from."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli.options import site_option
from pai_install.cli.output import echo
from pai_install.site.load import CONFIG, LAYOUT, SERVICES
from pai_install.site_edit.new import write_new_site
from pai_install.site_edit.starter import STARTER_LAYOUT, STARTER_SERVICES, starter_config


@click.command
@site_option
def command(*, site_dir: Path) -> int:
    """Write the commented files of a new site. Existing files are never overwritten."""
    files = {LAYOUT: STARTER_LAYOUT, CONFIG: starter_config(), SERVICES: STARTER_SERVICES}
    paths = write_new_site(site_dir, files)
    echo(f"wrote {', '.join(map(str, paths))}")
    echo(f"next: write your machines into layout.yaml, then run pai-install validate --site {site_dir}")
    return 0
