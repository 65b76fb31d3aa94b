"""The machines that --limit selects. Pure."""

from __future__ import annotations

from collections.abc import Collection

from pai_install.errors import ExitCode, PaiError
from pai_install.site.model import Site


def require_present(site: Site, names: Collection[str]) -> None:
    """Raises PaiError for a name that the site does not have, or has as absent."""
    present = [machine.hostname for machine in site.present_machines]
    strange = [name for name in names if name not in present]
    if strange:
        raise PaiError(
            f"cannot limit to {', '.join(strange)}: not a present machine of this site",
            code="limit-unknown-machine",
            remedy=f"choose from: {', '.join(sorted(present)[:20])}",
            exit_code=ExitCode.USAGE,
        )


def watched(site: Site, names: Collection[str]) -> tuple[str, ...]:
    """Returns the machines to observe: all present ones, or the selected ones and their dependencies for joins and
    mounts.
    """
    needed = {machine.hostname for machine in (*site.control_planes, *site.storage_servers)}
    present = (machine.hostname for machine in site.present_machines)
    return tuple(name for name in present if not names or name in names or name in needed)
