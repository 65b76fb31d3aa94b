"""The self-test's queues and jobs for Kueue. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pai_install.schedulers.self_test.driver import SelfTestDriver
from pai_install.schedulers.self_test.model import PREFIX, Gang, Queue, Scenario
from pai_install.schedulers.self_test.objects import (
    PRIORITIES,
    JsonObject,
    SelfTestContext,
    amount,
    class_name,
    job_spec,
    meta,
)
from pai_install.scheduling.job_queue import PRIORITY_LABEL, QUEUE_LABEL
from pai_install.scheduling.model import HOST_LABEL

API = "kueue.x-k8s.io/v1beta2"
ANYWHERE = "kueue.x-k8s.io/podset-unconstrained-topology"
JOBS = ("jobs.batch", "jobsets.jobset.x-k8s.io")
# what says why a job waits
WORDS = "workloads.kueue.x-k8s.io"
KINDS = (
    "clusterqueues.kueue.x-k8s.io",
    "resourceflavors.kueue.x-k8s.io",
    "topologies.kueue.x-k8s.io",
    "workloadpriorityclasses.kueue.x-k8s.io",
)
CONTROLLERS = ("pai-kueue", "pai-jobset")
# a flavor with a topology has to choose its machines by a label; every machine has this one
_NODES = {"kubernetes.io/os": "linux"}


def shared(context: SelfTestContext) -> tuple[JsonObject, ...]:
    """What all scenarios use: a topology, and classes of priority."""
    levels = [{"nodeLabel": HOST_LABEL}]
    topology = {"apiVersion": API, "kind": "Topology", "metadata": meta(context, PREFIX), "spec": {"levels": levels}}
    classes = [
        {
            "apiVersion": API,
            "kind": "WorkloadPriorityClass",
            "metadata": meta(context, class_name(rank)),
            "value": value,
        }
        for rank, value in PRIORITIES.items()
    ]
    return (topology, *classes)


def queues(context: SelfTestContext, scenario: Scenario) -> tuple[JsonObject, ...]:
    """A flavor of its own, and per queue a ClusterQueue and a LocalQueue."""
    if not scenario.queues:
        return ()
    spec = {"nodeLabels": _NODES, **({"topologyName": PREFIX} if scenario.topology else {})}
    flavor = {
        "apiVersion": API,
        "kind": "ResourceFlavor",
        "metadata": meta(context, scenario.title),
        "spec": spec,
    }
    pairs = [_queue(context, scenario, queue) for queue in scenario.queues]
    return (flavor, *(one for pair in pairs for one in pair))


def _queue(context: SelfTestContext, scenario: Scenario, queue: Queue) -> tuple[JsonObject, JsonObject]:
    name = f"{scenario.title}-{queue.name}"
    spec: JsonObject = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scenario.namespace}},
        "resourceGroups": [_quota(scenario, queue)],
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
    }
    if len(scenario.queues) > 1:
        spec["cohortName"] = scenario.title
    whole = {"apiVersion": API, "kind": "ClusterQueue", "metadata": meta(context, name), "spec": spec}
    metadata = meta(context, queue.name, scenario.namespace)
    local = {"apiVersion": API, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}
    return whole, local


def _quota(scenario: Scenario, queue: Queue) -> JsonObject:
    quota: JsonObject = {"name": scenario.resource, "nominalQuota": amount(scenario, queue.units)}
    if len(scenario.queues) > 1:  # limits are for those who could lend
        quota["borrowingLimit"] = amount(scenario, queue.most - queue.units)
    return {
        "coveredResources": [scenario.resource],
        "flavors": [{"name": scenario.title, "resources": [quota]}],
    }


def gang_objects(context: SelfTestContext, scenario: Scenario, gang: Gang) -> tuple[JsonObject, ...]:
    """A batch Job, or a JobSet where it has several roles."""
    metadata = meta(context, gang.name, scenario.namespace, gang.name)
    metadata["labels"] |= {QUEUE_LABEL: gang.queue, PRIORITY_LABEL: class_name(gang.rank)}
    if len(gang.tasks) == 1:
        spec = _job(context, scenario, gang, gang.size)
        return ({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec},)
    roles = [
        {"name": f"role-{number}", "replicas": 1, "template": {"spec": _job(context, scenario, gang, pods)}}
        for number, pods in enumerate(gang.tasks)
    ]
    spec = {"replicatedJobs": roles, "failurePolicy": {"maxRestarts": 3}}
    return ({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec},)


def _job(context: SelfTestContext, scenario: Scenario, gang: Gang, pods: int) -> JsonObject:
    spec = job_spec(context, scenario, gang, pods)
    if scenario.topology:
        spec["template"]["metadata"]["annotations"] = {ANYWHERE: "true"}
    return spec


def why(workloads: Sequence[Mapping[str, Any]]) -> str:
    """What Kueue says of the jobs that it does not let start, and of those that it stopped."""
    conditions = [row for workload in workloads for row in (workload.get("status") or {}).get("conditions") or ()]
    known = {("QuotaReserved", "False"), ("Evicted", "True")}
    messages = [str(row.get("message", "")) for row in conditions if (row.get("type"), row.get("status")) in known]
    return "; ".join(dict.fromkeys(filter(None, messages)))


def pods_ready_s(configmaps: Sequence[Mapping[str, Any]]) -> float:
    """How long Kueue gives a gang to become whole, by its own configuration; 0: without end, or it is not known.

    Also 0 where other jobs wait meanwhile: then the test would keep users' jobs from starting.
    """
    texts = [text for row in configmaps for text in (row.get("data") or {}).values() if "waitForPodsReady" in str(text)]
    section = re.search(r"^waitForPodsReady:\s*\n((?:[ \t]+.*\n?)+)", texts[0], re.MULTILINE) if texts else None
    if section is None or re.search(r"blockAdmission:\s*true", section[1]):
        return 0.0
    found = re.search(r"^\s+timeout:\s*\"?((?:\d+[hms])+)", section[1], re.MULTILINE)
    parts = re.findall(r"(\d+)([hms])", found[1]) if found else []
    return float(sum(int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in parts))


DRIVER = SelfTestDriver(
    JOBS,
    gang_objects,
    queues,
    shared,
    WORDS,
    why,
    KINDS,
    CONTROLLERS,
    priorities=dict.fromkeys(PRIORITIES, 0),  # Kueue has priorities of its own, and evicts whole jobs itself
)
