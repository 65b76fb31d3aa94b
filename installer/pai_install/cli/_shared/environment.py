"""The environment that verbs run in: the product's, or the one that `cli.main.run` was given."""

from __future__ import annotations

import functools
from collections.abc import Callable

import click

from pai_install.cli.command import environment_of


def pass_environment(verb: Callable[..., int]) -> Callable[..., int]:
    """Gives the verb its environment as `environment`."""

    @functools.wraps(verb)  # with the options that the verb has
    def given(**words: object) -> int:
        return verb(environment=environment_of(click.get_current_context()), **words)

    return given
