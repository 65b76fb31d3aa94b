"""Virtual clusters with HiveD: what the kube-scheduler before it is told, priorities and policies. Pure.

kube-scheduler, the bridge and HiveD are containers of one pod and speak over its loopback. The add-on `hived` has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.scheduling import amounts
from pai_install.scheduling.hived_policies import MARKER, SCHEDULER, policies
from pai_install.scheduling.model import PRIORITIES, Scheduling, VirtualCluster

Object = dict[str, Any]

# where kube-scheduler asks: the bridge, which asks HiveD
BRIDGE = "http://127.0.0.1:9097/v1/extender"

# OpenPAI's own classes, one per job, are this far apart, and lie below ours of the same priority
_HIGHEST, _APART = 126, 24


def hived_objects(scheduling: Scheduling) -> Iterator[Object]:
    """Priorities and policies; what the pod of HiveD needs is the add-on's."""
    yield from _priorities()
    yield from policies(scheduling)


def kube_scheduler_config(scheduling: Scheduling) -> Object:
    """One profile per virtual cluster, as each of its pods names one; HiveD is asked for pods with the marker."""
    extender = {
        "urlPrefix": BRIDGE,
        "filterVerb": "filter",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "enableHTTPS": False,
        "httpTimeout": "5s",
        "nodeCacheCapable": True,
        "ignorable": False,
        "managedResources": [{"name": MARKER, "ignoredByScheduler": True}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        # HiveD answers with the node that it chose: one that was not in the question is an error
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": f"{SCHEDULER}{cluster.name}"} for cluster in scheduling.clusters],
        "extenders": [extender],
    }


def _priorities() -> Iterator[Object]:
    """Classes in HiveD's order: kube-scheduler offers no node for the place of a pod that it takes for as important."""
    for name, value in PRIORITIES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": -((_HIGHEST - value) << _APART),
            "preemptionPolicy": "PreemptLowerPriority",
        }


def hived_remarks(scheduling: Scheduling) -> Iterator[str]:
    """What HiveD does not keep of what was asked."""
    yield "HiveD is unmaintained since 2020: the scheduler kueue keeps the same virtual clusters"
    yield "a job gets what others leave idle only with the priority oppo, and then from every virtual cluster"
    yield "pods say ignoreK8sSuggestedNodes: false, or they are refused: OpenPAI's rest-server writes what the job says"
    if scheduling.levels:
        yield f"jobs are not placed by {' or '.join(level.name for level in scheduling.levels)}"
    for sku in scheduling.supply:
        if not any(amounts.owned(scheduling, cluster, sku).units for cluster in scheduling.clusters):
            yield f"{sku}: no virtual cluster is guaranteed any of it: only jobs of priority oppo can use it"
    for cluster in scheduling.clusters:
        yield from _of_cluster(scheduling, cluster)


def _of_cluster(scheduling: Scheduling, cluster: VirtualCluster) -> Iterator[str]:
    for share in cluster.shares:
        if share.lend < share.units:
            yield f"{cluster.name}: jobs of priority oppo may use all idle {share.sku}, also what is not lent"
        if share.borrow is not None:
            yield f"{cluster.name}: its jobs of priority oppo are not limited to {share.borrow} {share.sku} more"
        if single := share.units % scheduling.supply[share.sku].units:
            yield f"{cluster.name}: {single} {share.sku} are no whole machine: a pod there has one"
    if cluster.pinned:
        yield f"{cluster.name}: only a job that names the machine as pinnedCellId uses {', '.join(cluster.pinned)}"
        yield f"{cluster.name}: machines of its own are lent to jobs of priority oppo, and no job spans two of them"
