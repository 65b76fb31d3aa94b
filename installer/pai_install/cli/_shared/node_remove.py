"""`node remove`: which machines, whether the site can do without them, the agreement, the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from pai_install.cli._shared.act import How, SiteRequest, outcome_of
from pai_install.cli._shared.tell import say
from pai_install.documents.problem import text_lines
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.node_remove import NodeRemove
from pai_install.run.environment import Environment
from pai_install.run.layout_file import edited_layout, read_layout, site_with
from pai_install.site.load import LAYOUT, load_site
from pai_install.site.model import Machine, Site
from pai_install.site_edit.shown import difference


@dataclass(frozen=True, slots=True)
class Leaving:
    """How machines leave; the fields are those of NodeRemove. agreed: names that the user gave with --yes."""

    dead: bool
    wait: int | None
    grace: int | None
    timeout: int
    force: bool
    keep: bool
    data: bool


def remove(
    site_dir: Path, names: tuple[str, ...], leaving: Leaving, how: How, environment: Environment, agreed: str | None
) -> int:
    """Removes the machines; the exit code.

    Raises PaiError for names that the layout does not have, and for a site that cannot do without the machines.
    """
    loaded = load_site(site_dir)
    nodes = tuple(dict.fromkeys(names))
    machines = named_machines(loaded.site, nodes)
    require_names(nodes, agreed, check=how.check, by_name=any(machine.control_plane for machine in machines))
    edit = "absent" if leaving.keep else "remove"
    before, layout = read_layout(site_dir), edited_layout(site_dir, nodes, edit)
    after = site_with(site_dir, layout)
    known = {(problem.path, problem.message) for problem in loaded.problems}
    for line in text_lines(one for one in after.problems if (one.path, one.message) not in known):
        say(line)
    click.echo(difference(str(site_dir / LAYOUT), before, layout, ()), nl=False, err=how.as_json)
    operation = NodeRemove(
        machines=machines,
        nodes=nodes,
        dead=leaving.dead,
        wait=leaving.wait,
        grace=leaving.grace,
        timeout=leaving.timeout,
        force=leaving.force,
        how=edit,
        data=leaving.data,
    )
    request = SiteRequest(site_dir, operation, layout=layout)
    outcome = outcome_of(request, environment, replace(how, yes=agreed is not None))
    if (
        outcome is not None
        and outcome.exit_code is ExitCode.OK
        and not how.check
        and any(machine.control_plane for machine in machines)
    ):
        say("pai-install apply tells the other machines that the control plane is gone")
    return ExitCode.PREFLIGHT_FAILED if outcome is None else outcome.exit_code


def named_machines(site: Site, names: tuple[str, ...]) -> tuple[Machine, ...]:
    """The machines of the layout, absent ones included. Raises PaiError (usage) for other names."""
    known = {machine.hostname: machine for machine in site.machines}
    strange = [name for name in names if name not in known]
    if strange:
        raise PaiError(
            f"layout.yaml has no machine {', '.join(strange)}",
            code="machine-not-in-layout",
            remedy=did_you_mean(strange[0], known),
            exit_code=ExitCode.USAGE,
        )
    return tuple(known[name] for name in names)


def require_names(names: tuple[str, ...], agreed: str | None, *, check: bool, by_name: bool = False) -> None:
    """Several machines are agreed to by name, and so is a control plane (by_name).

    agreed: what stands behind --yes; None without it.

    Raises PaiError (usage) where other machines were agreed to.
    """
    if agreed is None or check or (not agreed and len(names) == 1 and not by_name):
        return
    given = {word for word in agreed.replace(" ", ",").split(",") if word}
    if given != {*names}:
        raise PaiError(
            f"--yes agrees to {', '.join(sorted(given)) or 'no machine by name'}, and the command is about "
            f"{', '.join(names)}: nothing was done",
            code="confirmed-names-differ",
            remedy=f"to agree without being asked: --yes={','.join(names)}",
            exit_code=ExitCode.USAGE,
        )
