"""The last words of `quickstart`: the commands that come next. Pure."""

from __future__ import annotations

from pathlib import Path

from pai_install.report.site_status import ConsoleAccess
from pai_install.site import Site
from pai_install.system.words import plural

_NEXT = (
    ("status {here}", "machines, cluster, and drift"),
    ("job list {here} --all", "your jobs"),
    ("kubectl {here} -- get nodes", "the nodes"),
    ("lab down {here} --yes", "remove everything"),
)


def quickstart_text(site: Site, folder: Path, seconds: float, access: ConsoleAccess | None, *, program: str) -> str:
    """Returns the result and the next commands. program: the command as a user types it. seconds: of the whole run."""
    nodes = plural(len(site.present_machines), "machine is", "machines are")
    commands = [(f"{program} {words.format(here=f'--site {folder}')}", meaning) for words, meaning in _NEXT]
    width = max(len(words) for words, _meaning in commands)
    return "\n".join(
        [
            "",
            f"{nodes} a verified Kubernetes cluster after {seconds / 60:.1f} min.",
            *(f"  {words:{width}}  {meaning}" for words, meaning in commands),
            *(access.lines if access else ()),
        ]
    )
