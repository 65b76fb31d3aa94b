"""What kube-state-metrics tells of Kubernetes objects: allow lists, so that its size is bounded. Pure."""

from __future__ import annotations

import json

_RESOURCES = ("daemonsets", "deployments", "leases", "nodes", "persistentvolumeclaims", "pods", "statefulsets")
# a Lease of each node changes every ten seconds
_UNWATCHED = "kube-node-lease"
_METRICS = (
    "kube_node_info",
    "kube_node_labels",
    "kube_node_spec_unschedulable",
    "kube_node_spec_taint",
    "kube_node_status_condition",
    "kube_node_status_allocatable",
    "kube_node_status_capacity",
    "kube_pod_info",
    "kube_pod_labels",
    "kube_pod_status_phase",
    "kube_pod_status_ready",
    "kube_pod_status_reason",
    "kube_pod_container_resource_requests",
    "kube_pod_container_status_restarts_total",
    "kube_pod_container_status_waiting_reason",
    "kube_deployment_spec_replicas",
    "kube_deployment_status_replicas_ready",
    "kube_daemonset_status_desired_number_scheduled",
    "kube_daemonset_status_number_ready",
    "kube_lease_renew_time",
    "kube_statefulset_replicas",
    "kube_statefulset_status_replicas_ready",
    "kube_persistentvolumeclaim_info",
)
# labels of jobs that their metrics have, too
_POD_LABELS = ("pai-install/user", "pai-install/group", "pai-install/virtual-cluster", "pai-install/job")

_GANG_METRIC = "volcano_pod_group_created_seconds"
# what kube-state-metrics makes of Volcano's gangs: Volcano's own metrics are open to every pod of the cluster
_OF_VOLCANO = {
    "kind": "CustomResourceStateMetrics",
    "spec": {
        "resources": [
            {
                "groupVersionKind": {"group": "scheduling.volcano.sh", "version": "v1beta1", "kind": "PodGroup"},
                "metricNamePrefix": "volcano",
                "labelsFromPath": {"namespace": ["metadata", "namespace"], "pod_group": ["metadata", "name"]},
                "metrics": [
                    {
                        "name": "pod_group_created_seconds",
                        "help": "Time when a gang was created, with its queue and phase.",
                        "each": {
                            "type": "Gauge",
                            "gauge": {"path": ["metadata", "creationTimestamp"]},
                        },
                        "labelsFromPath": {"queue": ["spec", "queue"], "phase": ["status", "phase"]},
                    }
                ],
            },
        ]
    },
}


def state_arguments(*, volcano: bool = False) -> tuple[str, ...]:
    """Returns the arguments of kube-state-metrics that bound what it tells. volcano: of gangs, too."""
    gangs = (f"--custom-resource-state-config={json.dumps(_OF_VOLCANO)}",) if volcano else ()
    return (
        # Without this list, kube-state-metrics watches all kinds, Secrets among them.
        f"--resources={','.join(_RESOURCES)}",
        f"--namespaces-denylist={_UNWATCHED}",
        f"--metric-allowlist={','.join((*_METRICS, *((_GANG_METRIC,) if volcano else ())))}",
        f"--metric-labels-allowlist=pods=[{','.join(_POD_LABELS)}]",
        *gangs,
    )
