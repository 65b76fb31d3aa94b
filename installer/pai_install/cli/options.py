"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

Command = TypeVar("Command", bound=Callable[..., Any])

_SITE = "pai_install.site"


def _inherited(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """The --site nearest to the end of the command line, else the default."""
    if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
        context.meta[_SITE] = value  # meta belongs to the whole command line
    chosen: Path = context.meta.get(_SITE, value)
    return chosen


def site_option_with(*, expose: bool = True, meaning: str = "", **attributes: Any) -> Callable[[Command], Command]:  # noqa: ANN401 - click's
    """Returns the option --site. A group before the command may have it as well."""
    return click.option(
        "--site",
        "site_dir",
        type=click.Path(file_okay=False, path_type=Path),
        callback=_inherited,
        expose_value=expose,
        help=meaning or "Folder of the site.",
        **attributes,
    )


_DEFAULT: dict[str, Any] = {
    "envvar": "PAI_SITE",
    "default": ".",
    "show_default": "$PAI_SITE or the current folder",
}
site_option = site_option_with(**_DEFAULT)
group_site_option = site_option_with(expose=False, **_DEFAULT)


def formats_option(*formats: str) -> Callable[[Command], Command]:
    """Returns an option --format with these formats. The first one is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Format of the report.",
    )


format_option = formats_option("text", "json")


def text_only(command: Command) -> Command:
    """In place of --format, for a verb with text alone."""
    return command


yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
accept_new_option = click.option(
    "--accept-new",
    is_flag=True,
    help="Record unknown SSH host keys in the site's known_hosts.",
)
force_check_option = click.option(
    "--force-check", "forced", multiple=True, metavar="ID", help="Ignore failures of this preflight check. Repeatable."
)
