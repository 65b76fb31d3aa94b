"""PriorityClasses of Kubernetes, for schedulers that go by those of pods. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.scheduling.admission import (
    RequestKind,
    Rule,
    allowed,
    clusters_at,
    in_force,
    literal,
    policy,
)
from pai_install.scheduling.model import PRIORITIES, Scheduling

Object = dict[str, Any]

_POD = RequestKind("", "v1", "pods")


def pod_priorities(*, preempts: bool) -> Iterator[Object]:
    """OpenPAI's priorities as classes of pods. preempts: whether one may take the place of a lower one."""
    for name, value in PRIORITIES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
        }


def priority_policy(scheduling: Scheduling) -> Iterator[Object]:
    """Yields the policy that refuses pods above the highest priority of their namespace's virtual clusters.

    It also refuses foreign classes with the same number or higher, because only the number of a class matters.
    """
    places = clusters_at(scheduling)
    if not places:
        return
    highest = {
        place: max((allowed(cluster)[0] for cluster in clusters), key=PRIORITIES.__getitem__)
        for place, clusters in places.items()
    }
    variables = {
        "highest": literal({place: PRIORITIES[name] for place, name in highest.items()}),
        # kube-scheduler compares numbers alone. A class of another name may have the same one.
        "priority": "has(object.spec.priority) ? object.spec.priority : 0",
    }
    rule = Rule(
        "!(request.namespace in variables.highest) || variables.priority <= variables.highest[request.namespace]",
        "'the priority ' + string(variables.priority) + ' is above the highest of this namespace, ' + "
        "string(variables.highest[request.namespace])",
    )
    yield from in_force(policy("pai-priorities", _POD, (rule,), variables), places)
