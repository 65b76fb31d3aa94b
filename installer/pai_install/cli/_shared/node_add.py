"""`node add`: the machine in layout.yaml, the run, and a clean machine where it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from pai_install.cli._shared.act import How, SiteRequest, outcome_of
from pai_install.cli._shared.tell import say
from pai_install.documents.problem import text_lines
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.capacity import spare_capacity
from pai_install.operations.node_add import NodeAdd
from pai_install.operations.node_remove import NodeRemove
from pai_install.plan.phases import PHASES
from pai_install.report.model import HostStatus, Outcome
from pai_install.run.environment import Environment
from pai_install.run.layout_file import layout_edited_by, read_layout, site_with
from pai_install.site.load import LAYOUT, load_site
from pai_install.site.model import Site
from pai_install.site_edit.machines import with_machine, with_present
from pai_install.site_edit.shown import difference

_FAILED = (HostStatus.FAILED, HostStatus.UNREACHABLE)
_WORK = frozenset({"clean", *(phase.name for phase in PHASES)})


def add(
    site_dir: Path,
    names: tuple[str, ...],
    entry: Mapping[str, str],
    how: How,
    environment: Environment,
    request: SiteRequest,
) -> int:
    """Adds the machines; the exit code. entry: hostip and machine-type of a machine that layout.yaml lacks.

    request: how the run is to be made. Raises PaiError for names that are not, and for an entry that does not fit.
    """
    nodes = tuple(dict.fromkeys(names))
    loaded = load_site(site_dir)
    before = read_layout(site_dir)
    text = _layout(site_dir, loaded.site, nodes, entry)
    if text != before:
        after = site_with(site_dir, text)
        known = {(problem.path, problem.message) for problem in loaded.problems}
        for line in text_lines(one for one in after.problems if (one.path, one.message) not in known):
            say(line)
        click.echo(difference(str(site_dir / LAYOUT), before, text, ()), nl=False, err=how.as_json)
    operation = NodeAdd(nodes=nodes, before=before, text=text)
    outcome = outcome_of(replace(request, operation=operation, layout=text), environment, how)
    if outcome is None:
        return ExitCode.PREFLIGHT_FAILED
    if how.check or outcome.interrupted:
        return outcome.exit_code
    failed = tuple(name for name in nodes if _failed(outcome, name))
    if failed:
        _clean(site_dir, failed, replace(how, yes=True, goes_on=True), environment)
    elif outcome.exit_code == ExitCode.OK:
        for line in spare_capacity(load_site(site_dir).site, nodes):
            say(f"{line}: raise a quota in services-configuration.yaml, then pai-install vc apply")
    return outcome.exit_code


def _layout(site_dir: Path, site: Site, names: tuple[str, ...], entry: Mapping[str, str]) -> str:
    """The text of layout.yaml with the machines present."""
    known = {machine.hostname: machine for machine in site.machines}
    new = [name for name in names if name not in known]
    absent = [name for name in names if name in known and known[name].absent]
    if entry and len(names) > 1:
        raise PaiError(
            "--hostip and --machine-type are for one machine",
            code="node-options-for-one-machine",
            exit_code=ExitCode.USAGE,
        )
    if new and not entry:
        raise PaiError(
            f"layout.yaml has no machine {', '.join(new)}",
            code="machine-not-in-layout",
            remedy="add it to machine-list, or name one machine with --hostip and --machine-type",
            exit_code=ExitCode.USAGE,
        )
    if entry and not new:
        (name,) = names
        _require_same(known[name].hostip, known[name].sku, name, entry)

    def edit(text: str) -> str:
        for name in new:
            text = with_machine(text, {"hostname": name, **entry, "pai-worker": "true"})
        return with_present(text, absent)

    return layout_edited_by(site_dir, edit)


def _require_same(hostip: str, sku: str, name: str, entry: Mapping[str, str]) -> None:
    differs = [key for key, value in {"hostip": hostip, "machine-type": sku}.items() if entry.get(key, value) != value]
    if differs:
        raise PaiError(
            f"layout.yaml has {name} with another {' and '.join(differs)}",
            code="machine-differs-from-layout",
            remedy=f"leave out the options, or edit layout.yaml; other hardware: pai-install node replace {name}",
            exit_code=ExitCode.USAGE,
        )


def _failed(outcome: Outcome, name: str) -> bool:
    """Whether a machine did not come through one of the phases; a proof that fails leaves it as it is, for a look."""
    results = (phase.hosts[name] for phase in outcome.phases if phase.name in _WORK and name in phase.hosts)
    return any(result.status in _FAILED for result in results)


def _clean(site_dir: Path, names: tuple[str, ...], how: How, environment: Environment) -> None:
    """What failed is no half of a node: it is cleaned, and the same command begins again."""
    site = load_site(site_dir).site
    machines = tuple(site.machine(name) for name in names)
    say(f"{', '.join(names)} did not join: cleaning, so that the same command begins again")
    operation = NodeRemove(machines=machines, nodes=names, force=True, how="keep")
    outcome = outcome_of(SiteRequest(site_dir, operation), environment, how, quiet=True)
    left = [name for name in names if outcome is None or not _is_clean(outcome, name)]
    for name in names:
        state = "it could not be cleaned; node add does that first" if name in left else "it is clean"
        say(f"{name}: not added, and {state}")


def _is_clean(outcome: Outcome, name: str) -> bool:
    results = [phase.hosts[name] for phase in outcome.phases if name in phase.hosts]
    return all(result.status.good for result in results)
