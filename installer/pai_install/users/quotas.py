"""Quotas of objects in the namespaces of groups: without them, one member could fill etcd. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pai_install.scheduling.pod_limits import MAX_PODS
from pai_install.site.services.virtual_clusters import SchedulerType
from pai_install.users.kinds import kinds_at

Object = dict[str, Any]

NAME = "pai-objects"
# of each namespace; a gang of 2,000 pods fits several times
_JOBS, _SECRETS, _CONFIG_MAPS = 2_000, 500, 500
# bytes of a member's ConfigMap or Secret
MAX_DATA = 128 * 1024
# ConfigMaps of one record: its state and its logs
_MAPS_PER_RECORD = 2


def object_quotas(scheduler: SchedulerType | None, namespaces: Iterable[str], records: int) -> Iterator[Object]:
    """A ResourceQuota in each namespace, for all kinds that members may create. records: of deleted jobs."""
    kinds = [f"{kind.resource}.{kind.group}" if kind.group else kind.resource for kind in kinds_at(scheduler)]
    hard = {
        # Records share the namespace. A quota without them would stop the recorder and not the member.
        "count/configmaps": _CONFIG_MAPS + _MAPS_PER_RECORD * (records + _JOBS),
        "count/pods": MAX_PODS,
        # made for `ephemeral` volumes of pods, and by Volcano
        "count/persistentvolumeclaims": MAX_PODS,
        "count/secrets": _SECRETS,
        **{f"count/{kind}": _JOBS for kind in kinds},
    }
    for namespace in namespaces:
        yield {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {"hard": {name: str(count) for name, count in sorted(hard.items())}},
        }
