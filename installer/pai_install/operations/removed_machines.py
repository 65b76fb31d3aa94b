"""Removed machines: their credentials cannot create a node again. Pure.

A kubelet's certificate is valid until its expiry, because Kubernetes cannot revoke it. So the API refuses the node
itself: an admission policy compares the registering machine with the machine ids of removed ones. Credentials without a
node can only read data of all nodes, and no secret, because none is bound to them. A new certificate for a machine
removes it from the list (pai_node_certificate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pai_install.cluster.client import Select
from pai_install.kube.objects import JsonObject, child, text

NAME = "pai-removed-machines"
NAMESPACE = "kube-system"
QUERY = Select(("configmaps",), namespace=NAMESPACE, fields=f"metadata.name={NAME}")

_REMOVED = (
    "has(params.data) && object.metadata.name in params.data && has(object.status) && has(object.status.nodeInfo)"
    " && params.data[object.metadata.name] == object.status.nodeInfo.machineID"
)


def removed_machines(found: Sequence[JsonObject]) -> dict[str, str]:
    """Returns node -> machine id of removed machines, from the result of QUERY."""
    data = child(found[0], "data") if found else {}
    return {str(name): text(value) for name, value in data.items()}


def with_removed(known: Mapping[str, str], machines: Mapping[str, str]) -> dict[str, str]:
    """known, and these: node -> machine id. A machine without a known id is told by nothing, so it is left out."""
    return {**known, **{name: value for name, value in machines.items() if value}}


def fence(removed: Mapping[str, str]) -> list[dict[str, Any]]:
    """The objects that refuse them."""
    return [_machines(removed), _policy(), _binding()]


def _machines(removed: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": dict(sorted(removed.items())),
    }


def _policy() -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
    refused = {
        "expression": f"!({_REMOVED})",
        "message": "this machine was removed from the cluster; pai-install node add cleans it and adds it again",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            # a rule that cannot be evaluated must not cost the cluster its nodes
            "failurePolicy": "Ignore",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            # The machine id is in the status, which the kubelet writes at the creation of its node and by itself.
            "matchConstraints": {"resourceRules": [{**rule, "resources": ["nodes", "nodes/status"]}]},
            "validations": [refused],
        },
    }


def _binding() -> dict[str, Any]:
    # Before the first removal, or if someone deletes the ConfigMap, nodes must still register.
    where = {"name": NAME, "namespace": NAMESPACE, "parameterNotFoundAction": "Allow"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "paramRef": where, "validationActions": ["Deny"]},
    }
