"""The scheduler back ends: the one place that lists them."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.schedulers.backend import SchedulerBackend
from pai_install.schedulers.hived.backend import HiveDBackend
from pai_install.schedulers.kubernetes.backend import KubernetesBackend
from pai_install.schedulers.kueue.backend import KueueBackend
from pai_install.schedulers.volcano.backend import VolcanoBackend
from pai_install.scheduling.model import Backend

_ALL: tuple[SchedulerBackend, ...] = (KueueBackend(), VolcanoBackend(), KubernetesBackend(), HiveDBackend())
_BY_NAME: Mapping[Backend, SchedulerBackend] = {one.name: one for one in _ALL}


def backend_of(name: Backend) -> SchedulerBackend:
    """The back end that a site calls `name`."""
    return _BY_NAME[name]
