"""The entry of every verb: loads only the verb that was asked for, maps errors to exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pai_install import __version__
from pai_install.cli import failure
from pai_install.cli.box import refused_by_box
from pai_install.errors import ExitCode, PaiError
from pai_install.run.signals import ended
from pai_install.system.output import forget, lost, output_may_be_lost

if TYPE_CHECKING:  # `--help` loads no more than it needs
    from pai_install.run.environment import Environment

# verb -> one line of help. The module of a verb is cli/<verb>.py and its click command is named `command`;
# it is imported only when the verb runs, so that --help stays fast.
VERBS: dict[str, str] = {
    "quickstart": "From nothing to a verified three-machine cluster in the lab.",
    "init": "Write a commented site to start from.",
    "validate": "Check the site's files and show what they mean.",
    "migrate": "Turn a site of OpenPAI before v1.5 into a current one.",
    "schema": "Print the JSON Schema of a site's file or of a report.",
    "components": "List, fetch and verify third-party programs.",
    "inventory": "Print the Ansible inventory of the site.",
    "preflight": "Find out what would make an installation fail.",
    "plan": "Show what apply would change, and why; changes nothing.",
    "apply": "Bring the machines to the state that the site describes, and verify the cluster.",
    "upgrade": "Bring Kubernetes, runtimes and add-ons to other versions, machine after machine.",
    "status": "Machines, cluster, drift and the last run at a glance.",
    "verify": "Prove that the cluster works: nodes, pods, DNS, services, runtimes, time.",
    "health": "Show which machine or GPU is unhealthy, why, and what to do.",
    "node": "Add and remove machines; take nodes out of scheduling and back.",
    "certs": "Certificates: until when they are valid, and new ones.",
    "backup": "Put what the cluster cannot make again into one file.",
    "restore": "Put a backup in the place of what the cluster has.",
    "registry": "The registry cache of the cluster, and the registries that machines ask.",
    "storage": "Storages that jobs mount: which there are, who is granted them, and what uses them.",
    "scheduler": "The scheduler of jobs: show that it keeps what it promises, or have another one.",
    "vc": "Virtual clusters: who is guaranteed which machines, and the way from HiveD's block.",
    "job": "Jobs: submit a file of OpenPAI's, see how they stand, read their logs, stop them.",
    "user": "Users: members of groups, their access to the cluster and when it ends.",
    "reset": "Take the cluster and everything of pai-install off all machines.",
    "support-bundle": "One file with logs, versions, findings and reports, secrets masked, for who helps you.",
    "explain": "Explain a check: what it reads, its rule and thresholds, the remedy.",
    "operations": "List the verbs that act and their arguments, as text or JSON Schema.",
    "kubectl": "Run kubectl on the site's cluster.",
    "lab": "Throw-away machines on the dev box: up, down, status, ssh.",
}


class _Verbs(click.Group):
    """Lists verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"pai_install.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)  # noqa: S101 - a broken verb module is a bug
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="pai-install")
@click.option("--debug", is_flag=True, help="Show tracebacks; also accepted after the verb.")
def cli(*, debug: bool) -> None:
    """Install and operate a shared GPU training cluster.

    Every verb takes --site DIR (default: $PAI_SITE or the current folder): the folder with layout.yaml,
    config.yaml and, where there is one, services-configuration.yaml.
    """
    del debug  # taken out of argv by run(): it must also work behind the verb and when parsing fails


def run(argv: Sequence[str], environment: Environment | None = None) -> int:
    """Runs one command line and returns its exit code; never raises, never exits.

    environment: what verbs run in; the product's own where left out.
    """
    words = _without_debug(argv)
    try:
        result = cli.main(args=words, prog_name="pai-install", standalone_mode=False, obj=environment)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:  # `pai-install ... | head`
        forget(sys.stdout)
        return ExitCode.OK
    except (Exception, KeyboardInterrupt) as error:
        with output_may_be_lost():
            return _tell(error, words, debug=len(words) < len(argv))
    return result if isinstance(result, int) else ExitCode.OK


def _tell(error: BaseException, words: Sequence[str], *, debug: bool) -> int:  # noqa: PLR0911 - one per kind of ending
    """Says how a verb ended and gives the exit code."""
    match error:
        case click.Abort() if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            click.echo("aborted: not confirmed", err=True)
            return ExitCode.INTERRUPTED
        case click.ClickException():
            error.show()
            if _as_json(words):
                failure.show_document(PaiError(error.format_message(), exit_code=ExitCode.USAGE))
            return ExitCode.USAGE
        case click.Abort() | KeyboardInterrupt():  # click makes the one of the other
            click.echo("\ninterrupted; run the same command again to continue", err=True)
            return ExitCode.INTERRUPTED
        case PaiError():
            failure.show(error, as_json=_as_json(words), debug=debug)
            return error.exit_code
        case OSError() if lost(error):  # the terminal was closed: no reader is left
            return ExitCode.INTERRUPTED
        case OSError() if (refused := refused_by_box(error)) is not None:
            failure.show(refused, as_json=_as_json(words), debug=debug)
            return refused.exit_code
        case _:
            _show_bug(error, words, debug=debug)
            return ExitCode.INTERNAL


def _without_debug(argv: Sequence[str]) -> list[str]:
    """The words without --debug, which may stand anywhere among those that are ours."""
    ends = [argv.index(word) for word in ("--", "kubectl") if word in argv]
    ours = min(ends, default=len(argv))
    return [*(word for word in argv[:ours] if word != "--debug"), *argv[ours:]]


def _verb(words: Sequence[str]) -> str:
    return next((word for word in words if word in VERBS), "")


def _as_json(words: Sequence[str]) -> bool:
    verb = _verb(words)
    return bool(verb) and failure.wants_json(words, cli.get_command(click.Context(cli), verb))


def _drop_old_logs(newest: Path) -> None:
    """Keeps the last ten logs of this user's internal errors."""
    alike = [path for path in newest.parent.glob("pai-install-*.log") if path.lstat().st_uid == os.geteuid()]
    for old in sorted(alike, key=lambda path: path.lstat().st_mtime)[:-10]:
        old.unlink(missing_ok=True)


def _show_bug(error: BaseException, words: Sequence[str], *, debug: bool) -> None:
    descriptor, name = tempfile.mkstemp(prefix="pai-install-", suffix=".log")
    with os.fdopen(descriptor, "w") as log:
        log.write(f"pai-install {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
        log.write(f"verb: {_verb(words)}\n")
        traceback.print_exception(error, file=log)
    with contextlib.suppress(OSError):
        _drop_old_logs(Path(name))
    message = f"internal error: {type(error).__name__}: {error}; details in {Path(name)}"
    click.echo(message, err=True)
    if _as_json(words):
        failure.show_document(PaiError(message, exit_code=ExitCode.INTERNAL))
    if debug:
        traceback.print_exception(error)


def main(environment: Environment | None = None) -> None:
    """Runs this process's command line and exits with its code."""
    code = run(sys.argv[1:], environment)
    ended()
    sys.exit(code)
