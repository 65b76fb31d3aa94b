"""ValidatingAdmissionPolicies: refusals by the API server itself, independent of our programs. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.scheduling.model import LOWEST, PRIORITIES, Priority, Scheduling, VirtualCluster

Object = dict[str, Any]

_ADMISSION = "admissionregistration.k8s.io/v1"
NAMESPACE = "kubernetes.io/metadata.name"
# an administrator decides himself; jobs that try the cluster are his
_NOT_ADMINS = {
    "name": "not-an-administrator",
    "expression": "!request.userInfo.groups.exists(g, g in ['system:masters', 'kubeadm:cluster-admins'])",
}


@dataclass(frozen=True, slots=True)
class RequestKind:
    """The requests that a policy checks: resources of a group and version, and operations on them."""

    group: str
    version: str
    resource: str
    operations: tuple[str, ...] = ("CREATE",)

    @property
    def rule(self) -> Object:
        """As a policy writes it."""
        return {
            "apiGroups": [self.group],
            "apiVersions": [self.version],
            "operations": list(self.operations),
            "resources": [self.resource],
        }


@dataclass(frozen=True, slots=True)
class Rule:
    """Refuses requests that violate the expression. says: an expression that returns the message."""

    expression: str
    says: str

    @property
    def validation(self) -> Object:
        """As a policy writes it."""
        return {"expression": self.expression, "messageExpression": self.says}


def policy(
    name: str,
    kind: RequestKind,
    rules: Iterable[Rule],
    variables: Mapping[str, str],
    only: Mapping[str, str] | None = None,
    *,
    exempt_admins: bool = True,
) -> Object:
    """Returns a policy of the API server. variables: name -> expression, which may use earlier ones.

    only: name -> condition on requests. The policy checks requests that fulfil all of them.
    """
    conditions = [_NOT_ADMINS] if exempt_admins else []
    conditions += [{"name": it, "expression": expression} for it, expression in (only or {}).items()]
    return {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            # A rule that cannot be evaluated must not let a request through.
            "failurePolicy": "Fail",
            "matchConditions": conditions,
            "matchConstraints": {"resourceRules": [kind.rule]},
            "variables": [{"name": it, "expression": expression} for it, expression in variables.items()],
            "validations": [rule.validation for rule in rules],
        },
    }


def binding(name: str, namespaces: Iterable[str] | None) -> Object:
    """Returns the binding that activates a policy in these namespaces. None: in all."""
    spec: Object = {"policyName": name, "validationActions": ["Deny"]}
    if namespaces is not None:
        within = {"key": NAMESPACE, "operator": "In", "values": list(namespaces)}
        spec["matchResources"] = {"namespaceSelector": {"matchExpressions": [within]}}
    return {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": spec,
    }


def in_force(made: Object, namespaces: Iterable[str] | None) -> Iterator[Object]:
    """Yields a policy and its binding in these namespaces. None: in all."""
    yield made
    yield binding(made["metadata"]["name"], namespaces)


def namespaces_of(scheduling: Scheduling) -> tuple[str, ...]:
    """Namespaces of all groups that may submit anywhere, each once."""
    return tuple(dict.fromkeys(it for cluster in scheduling.clusters for it in cluster.namespaces))


def clusters_at(scheduling: Scheduling) -> Mapping[str, tuple[VirtualCluster, ...]]:
    """Namespace -> virtual clusters that may be used from it."""
    return {
        it: tuple(cluster for cluster in scheduling.clusters if it in cluster.namespaces)
        for it in namespaces_of(scheduling)
    }


def allowed(cluster: VirtualCluster) -> tuple[Priority, ...]:
    """Priorities that jobs of a virtual cluster may have, the highest first."""
    return tuple(name for name, value in PRIORITIES.items() if value <= PRIORITIES[cluster.highest])


def priorities_at(scheduling: Scheduling) -> Mapping[str, tuple[Priority, ...]]:
    """Namespace -> priorities of the virtual clusters that may be used from it."""
    found = {
        place: max(map(allowed, clusters), key=len, default=()) for place, clusters in clusters_at(scheduling).items()
    }
    return {place: names or (LOWEST,) for place, names in found.items()}


def literal(value: object) -> str:
    """Texts, numbers, lists and mappings as CEL writes them."""
    # CEL takes literals of JSON. Quotes of a name cannot end the expression then.
    return json.dumps(value, ensure_ascii=False)


def asks(pod: str, prefixes: Iterable[str]) -> str:
    """An expression: whether a container of the pod (an expression of its spec) asks for such resources."""
    names = literal(list(prefixes))
    return " || ".join(
        f"(has({pod}.{containers}) && {pod}.{containers}.exists(c, has(c.resources) && has(c.resources.limits) && "
        f"c.resources.limits.exists(r, {names}.exists(p, r.startsWith(p)) && string(c.resources.limits[r]) != '0')))"
        for containers in ("containers", "initContainers")
    )


def vendors(devices: Iterable[str]) -> tuple[str, ...]:
    """Returns the prefixes of device resources: all of nvidia.com for nvidia.com/gpu, including its slices."""
    return tuple(dict.fromkeys(f"{name.split('/')[0]}/" for name in devices))
