"""Rules for jobs with idle GPUs: the programs that enforce the limits must exist and have the required rights."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.documents.problem import YamlPath
from pai_install.site.model import Site
from pai_install.site.rules.problems import Wrong
from pai_install.site.schedulers import scheduler_of
from pai_install.site.services.jobs import Jobs
from pai_install.site.services.use_limits import Then
from pai_install.site.services.virtual_clusters import VirtualClusterEntry

_SECTIONS = ("idle", "long", "notebooks")


def of_use_limits(site: Site) -> Iterator[Wrong]:
    """Yields problems of the limits."""
    for path, then in _thens(site):
        if then != "list" and not site.services.job_records.keep_days:
            message = f"{then} is what the recorder of jobs does, and jobs.keep-days is 0: there is none"
            yield Wrong(path, "no-recorder", message, "write list, or keep-days: 1 or more")
        if then == "preemptible" and scheduler_of(site) != "kueue":
            message = f"{scheduler_of(site) or 'no scheduler'} cannot change the priority of a job that runs"
            yield Wrong(path, "preemptible", message, "write warn or stop, or use scheduler: {type: kueue}")


def _thens(site: Site) -> Iterator[tuple[YamlPath, Then]]:
    services = site.services
    if services.jobs is not None:
        yield from _of(services.jobs, ("jobs",))
    for number, entry in enumerate(services.virtual_clusters or ()):
        yield from _of(entry, ("virtual-clusters", number))


def _of(section: Jobs | VirtualClusterEntry, path: YamlPath) -> Iterator[tuple[YamlPath, Then]]:
    for name in _SECTIONS:
        limit = getattr(section, name)
        if limit is not None and "then" in limit.model_fields_set:
            yield (*path, name, "then"), limit.then
