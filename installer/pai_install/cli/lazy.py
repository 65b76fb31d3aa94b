"""Commands that are imported only when they run."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from pai_install.cli.site_names import complete_names


def imported(module: str, command: str = "command") -> click.Command:
    """Returns a command of a module of the command line."""
    found = getattr(importlib.import_module(f"pai_install.cli.{module}"), command)
    assert isinstance(found, click.Command)  # noqa: S101 - a broken module of a verb is a bug
    return found


class SuggestingGroup(click.Group):
    """A group that suggests commands for a misspelt one. click knows only the commands that are imported already."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command of the first word. Raises NoSuchCommand with similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=self.list_commands(ctx), ctx=ctx) from None


class LazyGroup(SuggestingGroup):
    """A group with commands of other modules. later: command -> module, where the function has the command's name.

    A verb that reads does not wait for the imports of a verb that changes something.
    """

    def __init__(self, *words: Any, later: Mapping[str, str], **options: Any) -> None:  # noqa: ANN401 - click's arguments
        super().__init__(*words, **options)
        self.later = later

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of their names."""
        return sorted({*super().list_commands(ctx), *self.later})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command by name, or None."""
        if cmd_name not in self.later:
            return super().get_command(ctx, cmd_name)
        command = imported(self.later[cmd_name], cmd_name)
        complete_names(command, self.name or "")
        return command
