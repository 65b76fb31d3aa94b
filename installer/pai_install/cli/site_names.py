"""Names of the site that the shell completes: machines, services, groups, virtual clusters, storages, and jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from pai_install.errors import PaiError

Names = Callable[[click.Context], Iterable[str]]


class SiteName(click.types.StringParamType):
    """A text with completions from the site. An invalid site has no completions."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Returns the names with this prefix, or with the prefix after the last comma of a list."""
        before, comma, begun = incomplete.rpartition(",") if "," in (param.metavar or "") else ("", "", incomplete)
        # A message in the middle of a command line that is being typed would only disturb.
        with contextlib.suppress(PaiError, OSError):
            found = dict.fromkeys(name for name in self.names(ctx) if name.startswith(begun))
            return [CompletionItem(f"{before}{comma}{name}") for name in found]
        return []


def complete_names(command: click.Command, verb: str) -> None:
    """Gives the parameters of a verb, and of those below it, the names of the site."""
    for parameter in command.params:
        names = _OF_VERB.get((verb, parameter.name or "")) or _OF_ALL.get(parameter.name or "")
        if names is not None and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = SiteName(names)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            complete_names(below, verb)


def _folder(context: click.Context) -> Path:
    return Path(context.params.get("site_dir") or ".")


def _of_site(function: str) -> Names:
    """Names that a function of app/site_names.py returns."""

    def names(context: click.Context) -> Iterable[str]:
        from pai_install.app import site_names  # noqa: PLC0415 - help loads nothing of it

        found: Iterable[str] = getattr(site_names, function)(_folder(context))
        return found

    return names


_machines = _of_site("machine_names")


def _jobs(context: click.Context) -> Iterable[str]:
    """The jobs of the cluster. A site that was never applied has none, and is not asked."""
    from pai_install.app.context import App  # noqa: PLC0415
    from pai_install.app.jobs import open_job_directory  # noqa: PLC0415
    from pai_install.cli.command import environment_of  # noqa: PLC0415
    from pai_install.cli.terminal import Terminal  # noqa: PLC0415

    folder = _folder(context)
    if not (folder / ".pai" / "kubeconfig").exists():
        return ()
    with App(folder, environment_of(context), Terminal()) as app:
        jobs = open_job_directory(app)
        return [job.name for job in jobs.list(jobs.namespace_of(context.params.get("group") or ""))]


def _log_targets(context: click.Context) -> Iterable[str]:
    from pai_install.app.log_sources import SERVICES  # noqa: PLC0415

    return [*_machines(context), *SERVICES, *_jobs(context)]


# parameter -> its names, whatever the verb
_OF_ALL: Mapping[str, Names] = {
    **dict.fromkeys(("nodes", "node", "machine", "limit"), _machines),
    "machine_type": _of_site("machine_type_names"),
    **dict.fromkeys(("group", "groups"), _of_site("group_names")),
    "cluster": _of_site("virtual_cluster_names"),
}
# verb, parameter -> its names
_OF_VERB: Mapping[tuple[str, str], Names] = {
    ("lab", "name"): _machines,
    ("vc", "name"): _of_site("virtual_cluster_names"),
    ("job", "name"): _jobs,
    ("logs", "target"): _log_targets,
    ("storage", "name"): _of_site("storage_names"),
    ("storage", "storages"): _of_site("storage_names"),
}
