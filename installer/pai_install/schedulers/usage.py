"""The objects of a site's scheduler -> what jobs use of its virtual clusters. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pai_install.kube.objects import JsonObject
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.scheduling.usage.borrowed_quota import lent_of
from pai_install.scheduling.usage.health import Unmet, unmet
from pai_install.scheduling.usage.model import UnfinishedJob, Use

NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Usage:
    """Use of virtual clusters by name and SKU; jobs that have not ended.

    lent: units of idle guarantees that others use. unknown: virtual clusters whose jobs have no mark of their own.
    unmet: guarantees for which machines are missing.
    """

    uses: Mapping[tuple[str, str], Use]
    lent: Mapping[tuple[str, str], int]
    jobs: tuple[UnfinishedJob, ...]
    unknown: frozenset[str]
    unmet: tuple[Unmet, ...]


def kinds_of(backend: Backend) -> tuple[str, ...]:
    """What to ask the cluster for, as kubectl names it, in all namespaces."""
    return (NODES, *backend_of(backend).usage_resources)


def usage_of(
    scheduling: Scheduling, answers: Sequence[Iterable[JsonObject]], absent: Mapping[str, tuple[str, ...]]
) -> Usage:
    """answers: the objects of each of `kinds_of`. absent: SKU -> machines that the site says are not there."""
    backend = backend_of(scheduling.backend)
    found = dict(zip(kinds_of(scheduling.backend), answers, strict=True))
    seen = backend.usage(scheduling, found)
    return Usage(
        uses={(use.cluster, use.sku): use for use in seen.uses},
        lent=lent_of(scheduling, seen.uses, backend.rules),
        jobs=seen.jobs,
        unknown=seen.unknown,
        unmet=unmet(scheduling, found[NODES], absent),
    )
