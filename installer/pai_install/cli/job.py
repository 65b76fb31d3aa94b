"""`pai-install job`: jobs of OpenPAI's protocols and of Kubernetes."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.job_look import list_command, logs, show
from pai_install.cli._shared.job_stop import stop
from pai_install.cli._shared.job_submit import submit
from pai_install.cli._shared.job_validate import validate_files
from pai_install.cli.options import format_option, group_site_option, site_option


@click.group
@group_site_option
def command() -> None:
    """Jobs: what files of them mean, and how those that were submitted stand."""


@command.command()
@site_option
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--group", metavar="NAME", help="Who would submit: their virtual clusters, storages and namespace count.")
@format_option
def validate(*, site_dir: Path, files: tuple[Path, ...], group: str | None, output_format: str) -> int:
    """Show what the jobs in files mean to this site, or what is wrong with them; asks no machine.

    A FILE is OpenPAI's (JSON of protocol 1, YAML of protocol 2) or has objects of Kubernetes: Job, JobSet, Pod,
    Volcano's Job, TFJob, PyTorchJob. Where no layout.yaml is, files are checked by themselves. Exit status 0, or 3
    when a file has errors: each is named with file, line and column, and what to do.
    """
    return validate_files(site_dir, files, group, output_format)


for verb in (submit, list_command, show, logs, stop):
    command.add_command(verb)
