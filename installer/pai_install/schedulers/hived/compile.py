"""Virtual clusters with HiveD: its configuration, that of the kube-scheduler before it, rights and policies. Pure.

kube-scheduler, our bridge and HiveD are containers of one pod and speak over its loopback: HiveD has neither TLS nor
logins, and whoever reaches it can bind pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

from pai_install.ports import HIVED_EXTENDER_PORT
from pai_install.schedulers.hived.cells import hived_config
from pai_install.schedulers.hived.policies import policies
from pai_install.scheduling import amounts
from pai_install.scheduling.job_queue import HIVED_MARKER, HIVED_SCHEDULER
from pai_install.scheduling.model import PRIORITIES, Scheduling, VirtualCluster

Object = dict[str, Any]

NAMESPACE = "pai-hived"
ACCOUNT = "hived"
CONFIG = "hivedscheduler"
SCHEDULER_CONFIG = "kube-scheduler"
# where kube-scheduler asks: the bridge, which asks HiveD
BRIDGE = f"http://127.0.0.1:{HIVED_EXTENDER_PORT}/v1/extender"

_RBAC = "rbac.authorization.k8s.io/v1"
# OpenPAI's own classes, one per job, are this far apart, and lie below ours of the same priority
_HIGHEST, _APART = 126, 24


def hived_objects(scheduling: Scheduling) -> Iterator[Object]:
    """Namespace, rights, both configurations, priorities and policies."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield from _rights()
    yield _config_map(CONFIG, {"hivedscheduler.yaml": hived_config(scheduling)})
    yield _config_map(SCHEDULER_CONFIG, {"config.yaml": kube_scheduler_config(scheduling)})
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
        # the bridge's own waits for HiveD and the API server add up to less
        "httpTimeout": "15s",
        "nodeCacheCapable": True,
        "ignorable": False,
        "managedResources": [{"name": HIVED_MARKER, "ignoredByScheduler": True}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        # HiveD answers with the node that it chose: one that was not in the question is an error
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": f"{HIVED_SCHEDULER}{cluster.name}"} for cluster in scheduling.clusters],
        "extenders": [extender],
    }


def _config_map(name: str, files: dict[str, Object]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {file: as_yaml(content) for file, content in files.items()},
    }


def as_yaml(content: Object) -> str:
    """A configuration as its program reads it, keys in the order of the value."""
    # PyYAML would leave 1e3 without quotes, which Go reads as a number; the import takes 40 ms
    from ruamel.yaml import YAML  # noqa: PLC0415

    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.width = False, 4096
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    text = StringIO()
    writer.dump(content, text)
    return text.getvalue()


def _rights() -> Iterator[Object]:
    """Those that HiveD, the bridge and a kube-scheduler were seen to use, and no others."""
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}
    yield {
        "apiVersion": _RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": "pai-hived"},
        "rules": [
            {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
            # the bridge takes away the pods whose place HiveD gives to others
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
            # and says first that they were preempted, or their Jobs would count them as failed
            {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
        ],
    }
    for role in ("pai-hived", "system:kube-scheduler", "system:volume-scheduler"):
        name = role if role == "pai-hived" else f"pai-hived-{role.removeprefix('system:')}"
        yield _bound("ClusterRoleBinding", {"name": name}, {"kind": "ClusterRole", "name": role}, account)
    place = {"name": "pai-hived-authentication", "namespace": "kube-system"}
    reader = {"kind": "Role", "name": "extension-apiserver-authentication-reader"}
    yield _bound("RoleBinding", place, reader, account)


def _bound(kind: str, metadata: Object, role: Object, account: Object) -> Object:
    reference = {"apiGroup": "rbac.authorization.k8s.io", **role}
    return {"apiVersion": _RBAC, "kind": kind, "metadata": metadata, "roleRef": reference, "subjects": [account]}


def _priorities() -> Iterator[Object]:
    """Classes in HiveD's order: kube-scheduler offers no node for the place of a pod that it takes for as important."""
    for name, value in PRIORITIES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": class_value(value),
            "preemptionPolicy": "PreemptLowerPriority",
        }


def class_value(priority: int) -> int:
    """What Kubernetes takes for HiveD's priority, between those of its neighbours."""
    return -((_HIGHEST - priority) << _APART)


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
