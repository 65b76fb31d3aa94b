"""The objects of a site's scheduler -> what jobs use of its virtual clusters. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pai_install.kube.objects import JsonObject
from pai_install.schedulers.hived import usage as hived
from pai_install.schedulers.kubernetes import usage as default
from pai_install.schedulers.kueue import usage as kueue
from pai_install.schedulers.volcano import usage as volcano
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.scheduling.usage.borrowed_quota import lent_of
from pai_install.scheduling.usage.health import Unmet, unmet
from pai_install.scheduling.usage.model import Seen, SeenJob, Use

NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Usage:
    """Use of virtual clusters by name and SKU; jobs that have not ended.

    lent: units of idle guarantees that others use. unknown: virtual clusters whose jobs have no mark of their own.
    unmet: guarantees for which machines are missing.
    """

    uses: Mapping[tuple[str, str], Use]
    lent: Mapping[tuple[str, str], int]
    jobs: tuple[SeenJob, ...]
    unknown: frozenset[str]
    unmet: tuple[Unmet, ...]


@dataclass(frozen=True, slots=True)
class _Reader:
    kinds: tuple[str, ...]
    seen: Callable[[Scheduling, Mapping[str, Iterable[JsonObject]]], Seen]


_READERS: Mapping[Backend, _Reader] = {
    "kueue": _Reader(kueue.KINDS, kueue.kueue_seen),
    "volcano": _Reader(volcano.KINDS, volcano.volcano_seen),
    "hived": _Reader(hived.KINDS, hived.hived_seen),
    "default": _Reader(default.KINDS, default.default_seen),
}


def kinds_of(backend: Backend) -> tuple[str, ...]:
    """What to ask the cluster for, as kubectl names it, in all namespaces."""
    return (NODES, *_READERS[backend].kinds)


def usage_of(
    scheduling: Scheduling, answers: Sequence[Iterable[JsonObject]], absent: Mapping[str, tuple[str, ...]]
) -> Usage:
    """answers: the objects of each of `kinds_of`. absent: SKU -> machines that the site says are not there."""
    found = dict(zip(kinds_of(scheduling.backend), answers, strict=True))
    seen = _READERS[scheduling.backend].seen(scheduling, found)
    return Usage(
        uses={(use.cluster, use.sku): use for use in seen.uses},
        lent=lent_of(scheduling, seen.uses),
        jobs=seen.jobs,
        unknown=seen.unknown,
        unmet=unmet(scheduling, found[NODES], absent),
    )
