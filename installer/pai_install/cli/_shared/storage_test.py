"""`pai-install storage test`: do storages work on every worker?"""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.look import checked, look
from pai_install.cli.options import format_option, limit_option, seconds_option, site_option
from pai_install.operations.storage_test import StorageTest
from pai_install.run.environment import Environment


@click.command()
@site_option
@click.argument("storages", nargs=-1, metavar="[NAME]...")
@limit_option
@click.option("--all-grants", is_flag=True, help="Test as every group with a grant, not only as the first.")
@click.option(
    "--size",
    "size_mib",
    type=click.IntRange(1, 24),
    default=16,
    show_default=True,
    metavar="MIB",
    help="Size of the test file.",
)
@seconds_option("--timeout", 30, 3600, 150, "Time limit of one storage on one worker, in seconds.")
@format_option
@pass_environment
def test(
    *,
    site_dir: Path,
    storages: tuple[str, ...],
    limit: tuple[str, ...],
    all_grants: bool,
    size_mib: int,
    timeout_s: int,
    output_format: str,
    environment: Environment,
) -> int:
    """Test storages on every worker: mount, write, read, compare, and delete.

    Without NAME, all storages are tested, by pods in the namespaces of groups with a grant. A hung mount ends with its
    time limit. Exit code 7 if a storage or a worker fails.
    """
    names = tuple(dict.fromkeys(storages))
    given = {"storages": names, "limit": limit, "all_grants": all_grants, "size_mib": size_mib, "timeout_s": timeout_s}
    return look(site_dir, checked(StorageTest, **given), environment, output_format)
