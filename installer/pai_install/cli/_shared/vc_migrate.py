"""`pai-install vc migrate`: the text, what is lost, and the edit of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import click

from pai_install.cli._shared.site_edit import Editing, edited
from pai_install.cli._shared.tell import say
from pai_install.errors import ExitCode, PaiError
from pai_install.report.virtual_clusters import NONE
from pai_install.schedulers.migration import everything, hived_block_of, lost_in_hived, sections_of, within_hived
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.scheduling.read import remarks_of, scheduling_of
from pai_install.site.groups import PlacedGroup, administrates, groups_of
from pai_install.site.load import load_site, read_site
from pai_install.site.model import Site
from pai_install.site_edit.sections import with_block, with_sections, without_sections
from pai_install.site_edit.virtual_clusters import admitted, kept_by

_SECTIONS = ("scheduler", "virtual-clusters")


def migrate_clusters(editing: Editing, target: Backend, *, write: bool) -> int:
    """Prints the virtual clusters as `target` has them, or writes them so."""
    site = load_site(editing.site_dir).site
    scheduling = _scheduling(site)
    wanted = within_hived(scheduling) if target == "hived" else replace(scheduling, backend=target)
    _tell(lost_in_hived(scheduling) if target == "hived" else remarks_of(everything(site)))
    if not write:
        click.echo(_text(site, wanted), nl=False)
        return ExitCode.OK
    return edited(editing, "vc migrate", lambda site, text: _edited(editing, site, text, wanted))


def _scheduling(site: Site) -> Scheduling:
    found = scheduling_of(everything(site))
    if found is None:
        raise PaiError(
            "there is nothing to migrate",
            code="migrate-without-hived-block",
            remedy=NONE.strip(),
            exit_code=ExitCode.USAGE,
        )
    return found


def _tell(lost: Sequence[str]) -> None:
    if lost:
        say("what is otherwise there:")
    for line in lost:
        say(f"  {line}")


def _text(site: Site, wanted: Scheduling) -> str:
    if wanted.backend != "hived":
        return sections_of(wanted, [group.name for group in groups_of(site.services)])
    rows = hived_block_of(wanted).splitlines()
    return "hivedscheduler:\n  config: |\n" + "".join(f"    {row}\n" for row in rows)


def _edited(editing: Editing, site: Site, text: str, wanted: Scheduling) -> str:
    """The text that says it. Raises PaiError where it would say something else."""
    ours = site.services.scheduler is not None
    if wanted.backend == "hived":
        made = _as_block(site, text, wanted) if ours else text
    elif ours:
        made = kept_by(text, wanted.backend)
    else:
        made = with_sections(text, _text(site, wanted))
    after = read_site(editing.site_dir, services=made).site
    if after is not None and scheduling_of(everything(after)) != wanted:
        message = "the edited file would not say the same, so nothing was written"
        remedy = "edit it by hand with what vc migrate prints without --write"
        raise PaiError(
            message, code="virtual-clusters-not-editable", remedy=remedy, exit_code=ExitCode.PREFLIGHT_FAILED
        )
    return made


def _as_block(site: Site, text: str, wanted: Scheduling) -> str:
    """HiveD's block, and who may submit in the groups' acls, where OpenPAI has it."""
    made = without_sections(text, _SECTIONS)
    groups = groups_of(site.services)
    for cluster in wanted.clusters:
        if len(cluster.groups) < len(groups):
            for group in _unnamed([one for one in groups if one.name in cluster.groups], cluster.name):
                made = admitted(made, group.path, cluster.name)
    return with_block(made, "hivedscheduler", "config", hived_block_of(wanted))


def _unnamed(groups: Sequence[PlacedGroup], cluster: str) -> Iterator[PlacedGroup]:
    """Those whose acls do not name the virtual cluster; administrators need not be named beside others."""
    others = [group for group in groups if not administrates(group)]
    for group in others or groups:
        if cluster not in group.group.extension.acls.virtual_clusters:
            yield group
