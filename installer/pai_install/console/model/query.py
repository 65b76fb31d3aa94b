"""Filters, order, and paging of OpenPAI's list of jobs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pai_install.console.model.view import JobView
from pai_install.console.openpai.job import ended_at, gpus_of, started_at

MAX_LIMIT, DEFAULT_LIMIT = 50_000, 5_000
Key = Callable[[JobView], tuple[int | str, ...]]


def _time(value: int | None) -> tuple[int | str, ...]:
    return (0 if value is None else value,)


# field of OpenPAI -> sort key
ORDERS: Mapping[str, Key] = {
    "submissionTime": lambda it: it.place,
    "createdTime": lambda it: it.place,
    "jobName": lambda it: (it.job.name,),
    "name": lambda it: (it.job.name,),
    "username": lambda it: (it.job.user,),
    "vc": lambda it: (it.job.cluster,),
    "virtualCluster": lambda it: (it.job.cluster,),
    "state": lambda it: (it.state,),
    "retries": lambda it: (it.job.retries,),
    "jobPriority": lambda it: (it.job.priority,),
    "totalTaskNumber": lambda it: (sum(role.wanted for role in it.job.roles),),
    "totalTaskRoleNumber": lambda it: (len(it.job.roles),),
    "totalGpuNumber": lambda it: (gpus_of(it.job),),
    "launchedTime": lambda it: _time(started_at(it.job)),
    "completedTime": lambda it: _time(ended_at(it.job)),
}
BY_SUBMISSION = "submissionTime"


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Selects jobs. Empty: all. states: of OpenPAI. keyword: a part of a name. tags: a job has at least one."""

    users: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    keyword: str = ""
    tags: frozenset[str] = frozenset()
    without_tags: frozenset[str] = frozenset()
    priorities: frozenset[str] = frozenset()
    order: str = BY_SUBMISSION
    descending: bool = True
    offset: int = 0
    limit: int = DEFAULT_LIMIT

    @property
    def countable(self) -> bool:
        """Whether an index of users, virtual clusters, and states knows the number of jobs."""
        return not (self.keyword or self.tags or self.without_tags or self.priorities)

    def selects(self, view: JobView) -> bool:
        """Whether a job is selected."""
        job = view.job
        return (
            (not self.users or job.user in self.users)
            and (not self.clusters or job.cluster in self.clusters)
            and (not self.states or view.state in self.states)
            and (not self.priorities or job.priority in self.priorities)
            and (not self.tags or not self.tags.isdisjoint(job.tags))
            and (not self.without_tags or self.without_tags.isdisjoint(job.tags))
            and (
                not self.keyword or self.keyword in job.name or self.keyword in job.user or self.keyword in job.cluster
            )
        )


def page(query: JobQuery, views: Sequence[JobView], namespaces: Collection[str] | None) -> tuple[JobView, ...]:
    """The selected jobs of a page. views: in the order of submission, the oldest first. namespaces: None for all.

    Looks at no more jobs than the page needs.
    """
    found: Iterable[JobView] = reversed(views) if query.descending else views
    if namespaces is not None:
        found = (view for view in found if view.job.namespace in namespaces)
    chosen: Iterator[JobView] = filter(query.selects, found)
    if query.order != BY_SUBMISSION:
        chosen = iter(sorted(chosen, key=ORDERS[query.order], reverse=query.descending))
    return tuple(islice(chosen, query.offset, query.offset + query.limit))
