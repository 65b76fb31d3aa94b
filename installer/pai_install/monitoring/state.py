"""What kube-state-metrics tells of Kubernetes objects: allow lists, so that its size is bounded. Pure."""

from __future__ import annotations

_RESOURCES = ("daemonsets", "deployments", "nodes", "persistentvolumeclaims", "pods", "statefulsets")
_METRICS = (
    "kube_node_info",
    "kube_node_labels",
    "kube_node_spec_unschedulable",
    "kube_node_spec_taint",
    "kube_node_status_condition",
    "kube_node_status_allocatable",
    "kube_node_status_capacity",
    "kube_node_annotations",
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
    "kube_statefulset_replicas",
    "kube_statefulset_status_replicas_ready",
    "kube_persistentvolumeclaim_info",
)
# labels of jobs that their metrics have, too
_POD_LABELS = ("pai-install/user", "pai-install/group", "pai-install/virtual-cluster", "pai-install/job")
_NODE_ANNOTATIONS = ("pai-install/maintenance",)


def state_arguments() -> tuple[str, ...]:
    """Returns the arguments of kube-state-metrics that bound what it tells."""
    return (
        f"--resources={','.join(_RESOURCES)}",
        f"--metric-allowlist={','.join(_METRICS)}",
        f"--metric-labels-allowlist=pods=[{','.join(_POD_LABELS)}]",
        f"--metric-annotations-allowlist=nodes=[{','.join(_NODE_ANNOTATIONS)}]",
    )
