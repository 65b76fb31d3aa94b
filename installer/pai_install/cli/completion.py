"""`pai-install completion`: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pai_install.cli.output import echo
from pai_install.errors import ExitCode

_PROGRAM, _VARIABLE = "pai-install", "_PAI_INSTALL_COMPLETE"


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(*, shell: str) -> int:
    """Print the completion script of a shell.

    It completes verbs, options, and names of the site: machines, groups, virtual clusters, storages, and jobs.

    \b
    bash:  echo 'eval "$(pai-install completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(pai-install completion zsh)"' >> ~/.zshrc
    fish:  pai-install completion fish > ~/.config/fish/completions/pai-install.fish
    """
    from pai_install.cli.main import cli  # noqa: PLC0415 - it imports this module

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has all three
    text = found(cli, {}, _PROGRAM, _VARIABLE).source()
    echo(text)
    return ExitCode.OK
