"""A job and its place -> the objects of the site's scheduler. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.hived.jobs import hived_objects
from pai_install.schedulers.kubernetes.jobs import default_objects
from pai_install.schedulers.kueue.jobs import kueue_objects
from pai_install.schedulers.volcano.jobs import volcano_objects
from pai_install.scheduling.model import Backend

Object = dict[str, Any]

_MAKERS: Mapping[Backend, Callable[[Job, JobPlace], Iterator[Object]]] = {
    "kueue": kueue_objects,
    "volcano": volcano_objects,
    "default": default_objects,
    "hived": hived_objects,
}


def objects_of(job: Job, place: JobPlace) -> tuple[Object, ...]:
    """The job's own object, then what goes with it. Raises PaiError for what the scheduler cannot do."""
    return tuple(_MAKERS[place.scheduling.backend](job, place))
