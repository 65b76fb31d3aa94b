"""The scheduler back ends: the one place that lists them. A process imports those that it needs."""

from __future__ import annotations

from functools import cache

from pai_install.schedulers.backend import SchedulerBackend
from pai_install.scheduling.model import Backend


@cache
def backend_of(name: Backend) -> SchedulerBackend:
    """The back end that a site calls `name`."""
    match name:
        case "kueue":
            from pai_install.schedulers.kueue.backend import KueueBackend  # noqa: PLC0415

            return KueueBackend()
        case "volcano":
            from pai_install.schedulers.volcano.backend import VolcanoBackend  # noqa: PLC0415

            return VolcanoBackend()
        case "default":
            from pai_install.schedulers.kubernetes.backend import KubernetesBackend  # noqa: PLC0415

            return KubernetesBackend()
        case "hived":
            from pai_install.schedulers.hived.backend import HiveDBackend  # noqa: PLC0415

            return HiveDBackend()
