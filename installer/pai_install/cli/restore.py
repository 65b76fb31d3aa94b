"""`pai-install restore`: a backup in the place of what the cluster has."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from pai_install.cli._shared.act import How, act, acting_options, outcome_of
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import say
from pai_install.cli.options import accept_new_option, force_check_option, site_option
from pai_install.cli.run_options import known_checks
from pai_install.errors import ExitCode
from pai_install.operations.install import Install
from pai_install.operations.restore import Restore
from pai_install.report.data import report_data
from pai_install.run.backup import BackupManifest, bring_back, read_backup, take_machine
from pai_install.run.environment import Environment
from pai_install.run.request import Request


@click.command
@site_option
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--only-site", is_flag=True, help="Only the site's files and its state on this dev box, where missing.")
@force_check_option
@accept_new_option
@acting_options
@pass_environment
def command(
    *,
    site_dir: Path,
    file: Path,
    only_site: bool,
    forced: tuple[str, ...],
    accept_new: bool,
    how: How,
    environment: Environment,
) -> int:
    """Put the cluster back to what it was when FILE was made by `backup`.

    Everything that the API has is replaced; pods and machines follow. Files of the site that are missing on this dev
    box are written first, others stay. Then one control plane starts from the snapshot, the others join it again, and
    apply brings the machines to what the site says. You agree by typing the id of the cluster, or with --yes.
    """
    checks = known_checks(forced)
    manifest = read_backup(file)
    if not how.check:
        _bring_back(file, manifest, site_dir, host_keys=not accept_new)
    if only_site:
        return ExitCode.OK
    with tempfile.TemporaryDirectory(prefix="pai-restore-") as folder:  # for its owner alone
        machine = Path(folder) / "machine.tar"
        take_machine(file, machine)
        operation = Restore(machine=str(machine), cluster=manifest.cluster, created=manifest.created)
        request = Request(site_dir, operation, accept_new, checks)
        outcome = outcome_of(request, environment, how, quiet=how.as_json)
    if outcome is None:
        return ExitCode.PREFLIGHT_FAILED
    if how.check or outcome.exit_code is not ExitCode.OK:
        if how.as_json:
            click.echo(json.dumps(report_data(outcome), indent=2))
        return outcome.exit_code
    after = replace(request, operation=Install())
    return act(after, environment, replace(how, yes=True, plan_file=None, goes_on=True))


def _bring_back(file: Path, manifest: BackupManifest, site_dir: Path, *, host_keys: bool) -> None:
    written, others = bring_back(file, manifest, site_dir, host_keys=host_keys)
    for path in written:
        say(f"{path} comes from the backup")
    for path in others:
        say(f"{path} is another than in the backup, and stays")
