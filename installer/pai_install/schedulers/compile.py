"""Virtual clusters -> objects of the scheduler that keeps them, labels of machines, and what it cannot keep. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.schedulers.hived.compile import hived_objects, hived_remarks
from pai_install.schedulers.kubernetes.compile import default_objects, default_remarks
from pai_install.schedulers.kueue.compile import kueue_labels, kueue_objects, kueue_remarks
from pai_install.schedulers.last_applied import kept_object
from pai_install.schedulers.volcano.compile import volcano_labels, volcano_objects, volcano_remarks
from pai_install.scheduling.model import SKU_LABEL, Backend, Scheduling

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Compiler:
    """objects: in the order in which they are made. remarks: sentences. labels: of a machine, beside its SKU's."""

    objects: Callable[[Scheduling], Iterator[Object]]
    remarks: Callable[[Scheduling], Iterator[str]]
    labels: Callable[[Scheduling, str], Mapping[str, str]] = lambda _scheduling, _machine: {}


_COMPILERS: Mapping[Backend, _Compiler] = {
    "kueue": _Compiler(kueue_objects, kueue_remarks, kueue_labels),
    "volcano": _Compiler(volcano_objects, volcano_remarks, volcano_labels),
    "hived": _Compiler(hived_objects, hived_remarks),
    "default": _Compiler(default_objects, default_remarks),
}


def objects_of(scheduling: Scheduling) -> tuple[Object, ...]:
    """All objects of a site's virtual clusters, those that others name before them; at last what they come from."""
    return (*_COMPILERS[scheduling.backend].objects(scheduling), kept_object(scheduling))


def remarks(scheduling: Scheduling) -> tuple[str, ...]:
    """What the chosen scheduler cannot keep of what was asked, a sentence each."""
    return tuple(_COMPILERS[scheduling.backend].remarks(scheduling))


def labels_of(scheduling: Scheduling) -> Mapping[str, Mapping[str, str]]:
    """Machine -> the node labels that it is to have."""
    compiler = _COMPILERS[scheduling.backend]
    return {
        machine: {SKU_LABEL: supply.sku, **compiler.labels(scheduling, machine)}
        for supply in scheduling.supply.values()
        for machine in supply.machines
    }
