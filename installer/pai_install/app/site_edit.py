"""Edits of services-configuration.yaml: the check of the new text, its difference, and the file."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App
from pai_install.app.frontend import FileDifference
from pai_install.documents.problem import text_lines
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.install import Install
from pai_install.run.services_file import services_file, write_services
from pai_install.site.load import SERVICES, LoadedSite, read_site
from pai_install.site.model import Site
from pai_install.site_edit.shown import difference
from pai_install.site_edit.spans import EditError

Edit = Callable[[Site, str], str]


class EditOptions(BaseModel):
    """Options of an edit of the site's files."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    check: bool = Field(default=False, description="Only show how the file would change.")
    apply: bool = Field(default=False, description="Run apply afterwards.")


WRITE = EditOptions()


def edit_services(app: App, verb: str, edit: Edit, options: EditOptions = WRITE) -> int:
    """Edits services-configuration.yaml, or shows the change. Then applies the site if options.apply.

    edit: the site and the current text -> the new text. Returns the exit code.
    Raises SiteInvalid for an invalid site, and PaiError where the new text is invalid or cannot be made.
    """
    if options.check:
        _new_text(app, edit)
        return ExitCode.OK
    if options.apply:
        app.frontend.require_answers()
    with app.hold(verb):
        app.reload()  # it may have changed while another process held the lock
        text = _new_text(app, edit)
        if text is not None:
            write_services(services_file(app.site_dir), text)
            app.reload()
        if options.apply:
            return app.exit_code(Install())
    if text is not None:
        app.notify(f"next: pai-install apply --site {app.site_dir}")
    return ExitCode.OK


def _new_text(app: App, edit: Edit) -> str | None:
    """Returns the new text, or None without a change. Sends the difference to the front end."""
    path = services_file(app.site_dir)
    before = path.read_bytes().decode() if path.exists() else ""
    try:
        after = edit(app.site, before)
    except EditError as error:
        raise PaiError(
            f"cannot edit {app.site_dir / SERVICES}:{error.line}: {error.message}",
            code="site-file-not-editable",
            remedy="edit the file by hand",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        ) from error
    if after == before:
        app.notify("nothing to do")
        return None
    services = (app.site.services, checked_site(app, app.loaded, after).services)
    app.frontend.notify(FileDifference(difference(str(app.site_dir / SERVICES), before, after, services)))
    return after


def checked_site(app: App, loaded: LoadedSite, text: str) -> Site:
    """The site with a new text of services-configuration.yaml. Says its new warnings.

    Raises PaiError where the site would be invalid.
    """
    reading = read_site(app.site_dir, services=text)
    if reading.site is None:
        errors = [problem for problem in reading.problems if problem.is_error]
        raise PaiError(
            "cannot edit the site: the result would be invalid. No changes made",
            code="edited-site-invalid",
            details="\n".join(text_lines(errors)),
            remedy="change the options, or edit the file by hand. Line numbers refer to the edited file",
            exit_code=ExitCode.SITE_INVALID,
        )
    known = {(problem.path, problem.message) for problem in loaded.problems}
    for line in text_lines(one for one in reading.problems if (one.path, one.message) not in known):
        app.notify(line)
    return reading.site
