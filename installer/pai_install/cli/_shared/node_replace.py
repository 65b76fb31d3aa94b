"""`node replace`: the machine that is gone leaves the cluster, another one takes its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from pai_install.cli._shared.act import How, SiteRequest, require_answer
from pai_install.cli._shared.node_remove import named_machines
from pai_install.cli._shared.runs import Runs
from pai_install.cli._shared.tell import say
from pai_install.errors import ExitCode
from pai_install.operations.node_add import NodeAdd
from pai_install.operations.node_remove import NodeRemove
from pai_install.report.planned import plan_text
from pai_install.run.environment import Environment
from pai_install.run.layout_file import layout_edited_by, read_layout, site_with
from pai_install.site.load import LAYOUT, load_site
from pai_install.site_edit.machines import with_values
from pai_install.site_edit.shown import difference


def replace_machine(
    site_dir: Path, name: str, entry: Mapping[str, str], how: How, environment: Environment, request: SiteRequest
) -> int:
    """Replaces the machine; the exit code. entry: what is other about it in layout.yaml.

    request: how the runs are to be made. Raises PaiError where the old machine still is a ready node.
    """
    require_answer(how)
    loaded = load_site(site_dir)
    machines = named_machines(loaded.site, (name,))
    before = read_layout(site_dir)
    text = layout_edited_by(site_dir, lambda text: with_values(text, name, {**entry, **_present(machines[0].absent)}))
    site_with(site_dir, text)
    click.echo(difference(str(site_dir / LAYOUT), before, text, ()), nl=False, err=how.as_json)
    runs = Runs(site_dir, environment, how, "node replace")
    leaving = NodeRemove(machines=machines, nodes=(name,), dead=True, how="replaced")
    made = replace(request, layout=text)
    if not (how.yes or how.check):
        say(plan_text(runs.standing(leaving, made).plan))
        if not click.confirm(f"replace {name} by another machine of that name?", err=True):
            say("nothing was done")
            return ExitCode.PREFLIGHT_FAILED
    gone = runs.run(leaving, made)
    if how.check or gone.exit_code != ExitCode.OK:
        return runs.ended(gone.exit_code)
    return runs.ended(runs.run(NodeAdd(nodes=(name,), before=before, text=text), made).exit_code)


def _present(absent: bool) -> dict[str, str]:  # noqa: FBT001 - a field of the machine
    return {"absent": "false"} if absent else {}
