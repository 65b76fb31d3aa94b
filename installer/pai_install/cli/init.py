"""`pai-install init`: a commented site to start from."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli.options import site_option
from pai_install.site.load import CONFIG, LAYOUT, SERVICES
from pai_install.site.migrate.run import refuse_existing
from pai_install.site.starter import STARTER_LAYOUT, STARTER_SERVICES, starter_config
from pai_install.system.files import write_atomic, write_secret


@click.command
@site_option
def command(*, site_dir: Path) -> int:
    """Write the commented files of a site: machines, settings, who shares them. No file is overwritten."""
    files = {LAYOUT: STARTER_LAYOUT, CONFIG: starter_config(), SERVICES: STARTER_SERVICES}
    refuse_existing(site_dir, files)
    write_atomic(site_dir / LAYOUT, files[LAYOUT])
    write_secret(site_dir / CONFIG, files[CONFIG])  # a password may be written into it
    write_secret(site_dir / SERVICES, files[SERVICES])  # so may secrets of storages
    click.echo(f"wrote {', '.join(str(site_dir / name) for name in files)}")
    click.echo(f"next: write your machines into them, then pai-install validate --site {site_dir}")
    return 0
