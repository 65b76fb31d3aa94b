"""Verbs that edit services-configuration.yaml: the edit, its check, the difference, the file, and what comes next."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pai_install.cli._shared.act import How, SiteRequest, act, require_answer
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import say
from pai_install.cli.options import site_option, yes_option
from pai_install.documents.problem import text_lines
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.install import Install
from pai_install.run.environment import Environment
from pai_install.run.lock import site_lock
from pai_install.run.services_file import services_file, write_services
from pai_install.run.state import open_state
from pai_install.site.load import SERVICES, LoadedSite, load_site, read_site
from pai_install.site.model import Site
from pai_install.site_edit.shown import difference
from pai_install.site_edit.spans import EditError

Edit = Callable[[Site, str], str]


@dataclass(frozen=True, slots=True)
class Editing:
    """How to edit. check: only show. then_apply: run `apply` afterwards. yes: do not ask there."""

    site_dir: Path
    environment: Environment
    check: bool = False
    then_apply: bool = False
    yes: bool = False

    @property
    def file(self) -> Path:
        """What is edited; where it is a link, that to which it leads."""
        return services_file(self.site_dir)


def editing_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds --site, --check, --apply and --yes to a verb and gives it their values as one `editing`."""

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(
        *,
        site_dir: Path,
        check: bool,
        then_apply: bool,
        yes: bool,
        environment: Environment,
        **words: Any,  # noqa: ANN401
    ) -> int:
        return verb(editing=Editing(site_dir, environment, check, then_apply, yes), **words)

    command: Callable[..., int] = pass_environment(gathered)
    options = (
        site_option,
        click.option("--check", is_flag=True, help="Only show how the file would change."),
        click.option("--apply", "then_apply", is_flag=True, help="Run apply afterwards."),
        yes_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def edited(editing: Editing, verb: str, edit: Edit) -> int:
    """Edits the file, or only shows how; then applies the site where that is asked for."""
    how = How(yes=editing.yes)
    if editing.check:
        _change(editing, edit)
        return ExitCode.OK
    if editing.then_apply:
        require_answer(how)
    with site_lock(open_state(editing.site_dir).path, verb):
        text = _change(editing, edit)
        if text is not None:
            write_services(editing.file, text)
    if editing.then_apply:
        return act(SiteRequest(editing.site_dir, Install()), editing.environment, how)
    if text is not None:
        say(f"next: pai-install apply --site {editing.site_dir}")
    return ExitCode.OK


def _change(editing: Editing, edit: Edit) -> str | None:
    """The text that the file is to have, None for the one that it has; shows the difference.

    Raises SiteInvalid for a site that is invalid before, PaiError for one that would be.
    """
    loaded = load_site(editing.site_dir)
    before = editing.file.read_bytes().decode() if editing.file.exists() else ""
    try:
        after = edit(loaded.site, before)
    except EditError as error:
        place = f"{editing.site_dir / SERVICES}:{error.line}"
        raise PaiError(
            f"{place}: {error.message}",
            code="site-file-not-editable",
            remedy="edit it by hand",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        ) from error
    if after == before:
        say("nothing to do")
        return None
    after_site = checked_site(editing, loaded, after)
    services = (loaded.site.services, after_site.services)
    click.echo(difference(str(editing.site_dir / SERVICES), before, after, services), nl=False)
    return after


def checked_site(editing: Editing, loaded: LoadedSite, text: str) -> Site:
    """The site with the text, its new warnings told. Raises PaiError when it has errors; nothing is written then."""
    reading = read_site(editing.site_dir, services=text)
    if reading.site is None:
        errors = [problem for problem in reading.problems if problem.is_error]
        raise PaiError(
            "the site would be invalid, so nothing was written",
            code="edited-site-invalid",
            details="\n".join(text_lines(errors)),
            remedy="the lines are those that the file would have: give the verb other values, or edit the file",
            exit_code=ExitCode.SITE_INVALID,
        )
    known = {(problem.path, problem.message) for problem in loaded.problems}
    for line in text_lines(one for one in reading.problems if (one.path, one.message) not in known):
        say(line)
    return reading.site
