#!/usr/bin/python
"""Ansible module: labels and taints of one node, beside those of everybody else."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_node_labels
short_description: Set a node's labels and taints, and remove the ones that it set before
description:
  - Runs on a control plane. Labels and taints of others stay. An annotation of the node lists the managed ones.
options:
  name: {description: The node., type: str, required: true}
  labels: {description: Label -> value., type: dict, default: {}}
  taints: {description: "As kubectl takes them, key[=value]:Effect.", type: list, elements: str, default: []}
  kubeconfig: {description: Which kubeconfig to use., type: path, default: /etc/kubernetes/admin.conf}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Label the node
  pai_node_labels: {name: worker1, labels: {example.com/rack: r1}, taints: ["dedicated=training:NoSchedule"]}
"""
RETURN = r"""
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

import json
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_json import parse
from ansible.module_utils.pai_kubectl import Kubectl, KubectlError
from ansible.module_utils.pai_managed import taint_words

OWNED = "pai-install/owned"
ATTEMPTS = 5

Node = dict[str, Any]
Taint = dict[str, str]


def parse_taint(word: str) -> Taint:
    """key[=value]:Effect as the API has it."""
    marked, _, effect = word.rpartition(":")
    key, equals, value = marked.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if equals and value else {})}


def identity(taint: Taint) -> str:
    """Returns the key and effect, which identify a taint."""
    return f"{taint['key']}:{taint['effect']}"


def owned(note: str | None) -> tuple[list[str], list[str]]:
    """Returns the labels and taints in the note of the last run. The kubelet of the node can write any text there."""
    try:
        found = parse(note or "{}")
        labels, taints = ([str(entry) for entry in found[name]] for name in ("labels", "taints"))
    except (ValueError, KeyError, TypeError):
        return [], []
    return labels, taints


def patch(node: Node, labels: dict[str, str], taints: list[str]) -> Node:
    """Returns the merge patch to the desired labels and taints, or {}."""
    metadata = node["metadata"]
    noted = metadata.get("annotations", {}).get(OWNED)
    labels_before, taints_before = owned(noted)
    wanted = {identity(taint): taint for taint in map(parse_taint, taints)}
    now = {"labels": sorted(labels), "taints": sorted(wanted)}
    note = json.dumps(now, sort_keys=True) if labels or taints else None

    seen = metadata.get("labels", {})
    changed: dict[str, str | None] = {key: value for key, value in labels.items() if seen.get(key) != value}
    # null deletes a key in a merge patch.
    changed.update({key: None for key in labels_before if key not in labels and key in seen})
    old = node["spec"].get("taints", [])
    # A merge patch replaces a list as a whole, so the taints of others are written again.
    kept = [taint for taint in old if identity(taint) not in taints_before and identity(taint) not in wanted]
    marks = [*kept, *wanted.values()]

    found: Node = {}
    if changed:
        found["metadata"] = {"labels": changed}
    if sorted(taint_words(old)) != sorted(taint_words(marks)):
        found["spec"] = {"taints": marks}
    if noted != note:
        found.setdefault("metadata", {})["annotations"] = {OWNED: note}
    return found


def shown(node: Node) -> str:
    """Labels and taints, for a diff."""
    labels = [f"{key}={value}" for key, value in sorted(node["metadata"].get("labels", {}).items())]
    taints = [f"taint {word}" for word in sorted(taint_words(node["spec"].get("taints", [])))]
    return "".join(f"{line}\n" for line in labels + taints)


def patched(node: Node, change: Node) -> Node:
    """The node as the patch would leave it."""
    labels = {**node["metadata"].get("labels", {}), **change.get("metadata", {}).get("labels", {})}
    taints = (change if "spec" in change else node)["spec"].get("taints", [])
    kept = {key: value for key, value in labels.items() if value is not None}
    return {"metadata": {"labels": kept}, "spec": {"taints": taints}}


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "labels": {"type": "dict", "default": {}},
            "taints": {"type": "list", "elements": "str", "default": []},
            "kubeconfig": {"type": "path", "default": "/etc/kubernetes/admin.conf"},
        },
        supports_check_mode=True,
    )
    name, taints = module.params["name"], module.params["taints"]
    labels = {key: str(value) for key, value in module.params["labels"].items()}
    marks = taint_words([parse_taint(word) for word in taints])
    expected = {"kind": "node", "name": name, "labels": labels, "taints": marks}
    managed = [expected] if labels or taints else []
    if module.check_mode and not os.path.exists(module.params["kubeconfig"]):
        module.exit_json(changed=True, managed=[], msg="there is no cluster yet")
    kubectl = Kubectl(module.params["kubeconfig"])
    errors = ""
    for _attempt in range(ATTEMPTS):
        try:
            node = kubectl.get("node", name)
        except KubectlError as error:
            errors = str(error)
            break
        change = patch(node, labels, taints)
        diff = {"before": shown(node), "after": shown(patched(node, change)), "before_header": f"node {name}"}
        if not change or module.check_mode:
            module.exit_json(changed=bool(change), managed=managed, diff=diff)
        # with its version, so that what others change meanwhile is seen and not overwritten
        change.setdefault("metadata", {})["resourceVersion"] = node["metadata"]["resourceVersion"]
        answer = kubectl.call("patch", "node", name, "--type=merge", "--patch", json.dumps(change))
        if answer.ok:
            module.exit_json(changed=True, managed=managed, diff=diff)
        errors = answer.message
        if "Conflict" not in errors and "has been modified" not in errors:
            break
    if module.check_mode:
        # on a fresh machine there is no node yet to compare with
        module.exit_json(changed=True, managed=[], msg=errors.strip())
    module.fail_json(msg=f"node {name} could not be labelled: {errors.strip()}")


if __name__ == "__main__":
    main()
