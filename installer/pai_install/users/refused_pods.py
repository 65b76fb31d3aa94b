"""Pods that their machine refuses are disrupted, and have not failed by themselves. Pure.

A kubelet that refuses a pod (OutOfcpu, UnexpectedAdmissionError) sets it to Failed, without any condition. A Job would
count it as a failure of the job. The API server adds the condition DisruptionTarget to the kubelet's own request, so
that no controller ever sees the pod without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pai_install.scheduling.admission import NAMESPACE, RequestKind, literal

Object = dict[str, Any]

_ADMISSION = "admissionregistration.k8s.io/v1"
_NAME = "pai-refused-pods"
# the first version whose API server has policies that change objects
_FIRST = (1, 36)
_STATUS = RequestKind("", "v1", "pods/status", ("UPDATE",))
# of a pod that has waited longer than its owner wanted
_DEADLINE = "DeadlineExceeded"
_IS_REFUSED = " && ".join(
    (
        "has(object.status.phase) && object.status.phase == 'Failed'",
        f"has(object.status.reason) && object.status.reason != {literal(_DEADLINE)}",
        # no container of it ever ran
        "!has(object.status.containerStatuses) && !has(object.status.initContainerStatuses)",
        "(!has(object.status.conditions) || !object.status.conditions.exists(c, c.type == 'DisruptionTarget'))",
    )
)
_CONDITION = (
    "Object{status: Object.status{conditions: [Object.status.conditions{type: 'DisruptionTarget', status: 'True', "
    "reason: 'TerminationByKubelet', lastTransitionTime: object.status.?startTime.orValue(timestamp(0)), "
    "message: object.status.reason + ': ' + object.status.?message.orValue('')}]}}"
)


def refused_pods(kubernetes_version: str, namespaces: Iterable[str]) -> Iterator[Object]:
    """Yields the policy and its binding in these namespaces, nothing for a version without such policies.

    kubernetes_version: such as 1.36.3.
    """
    if tuple(int(number) for number in f"{kubernetes_version}.0".split(".")[:2]) < _FIRST:
        return
    condition = {"expression": _CONDITION}
    yield {
        "apiVersion": _ADMISSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": _NAME},
        "spec": {
            # the job of a pod fails without the condition, and a kubelet reports on
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [_STATUS.rule]},
            "matchConditions": [{"name": "is-refused", "expression": _IS_REFUSED}],
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": condition}],
        },
    }
    within = {"key": NAMESPACE, "operator": "In", "values": list(namespaces)}
    yield {
        "apiVersion": _ADMISSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": _NAME},
        "spec": {"policyName": _NAME, "matchResources": {"namespaceSelector": {"matchExpressions": [within]}}},
    }
