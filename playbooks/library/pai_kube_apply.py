#!/usr/bin/python
"""Ansible module: Kubernetes objects, applied only when they differ."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_kube_apply
short_description: Server-side apply of objects, with diff, check mode and a wait for rollouts
options:
  objects: {description: The objects., type: list, elements: dict, required: true}
  absent:
    description: "Objects to delete where they carry the label app.kubernetes.io/managed-by: pai-install."
    type: list
    elements: str
    default: []
  wait_for:
    description: "Rollouts to wait for, as kind/name in a namespace: kube-system daemonset/kube-flannel."
    type: list
    elements: str
    default: []
  timeout: {description: Seconds to wait for each rollout., type: int, default: 180}
  kubeconfig: {description: Which kubeconfig to use., type: path, default: /etc/kubernetes/admin.conf}
  kubectl: {description: Which kubectl to use., type: path, default: /usr/local/bin/kubectl}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Apply the objects
  pai_kube_apply: {objects: "{{ __objects }}", wait_for: [kube-system daemonset/kube-flannel]}
"""
RETURN = r"""
msg: {description: What kubectl said., type: str, returned: always}
managed: {description: Expectations for pai_record., type: list, elements: dict, returned: always}
"""

import json
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_managed import object_versions

OURS = "app.kubernetes.io/managed-by=pai-install"


class Cluster:
    """kubectl with its kubeconfig."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def kubectl(self, words: list[str], data: str | None = None) -> tuple[int, str, str]:
        """Runs kubectl; status, output, errors."""
        base = [self.module.params["kubectl"], "--kubeconfig", self.module.params["kubeconfig"]]
        return self.module.run_command(base + words, data=data)

    def apply(self, objects: list[dict[str, Any]]) -> tuple[bool, str, str]:
        """Makes objects as they should be; whether they were not, what kubectl said, and the difference."""
        if not objects:
            return False, "", ""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        how = ["--server-side", "--force-conflicts", "--field-manager=pai-install", "--filename=-"]
        status, diff, errors = self.kubectl(["diff", *how], text)
        # 0: the same, 1: differs; more: kubectl could not tell, for example because the namespace is one of the objects
        if status == 0 or self.module.check_mode:
            return status != 0, errors.strip() if status > 1 else "", diff
        status, said, errors = self.kubectl(["apply", *how], text)
        if status != 0:
            self.module.fail_json(msg=f"kubectl apply failed: {errors.strip()}")
        return True, said.strip(), diff

    def delete(self, entry: str) -> tuple[bool, str]:
        """Deletes one object (namespace kind/name) if it is there and marked as ours; whether it was, and its name."""
        namespace, _, target = entry.partition(" ")
        kind, _, name = target.partition("/")
        where = [f"--namespace={namespace}", kind]
        ours = [f"--selector={OURS}", f"--field-selector=metadata.name={name}"]
        status, out, errors = self.kubectl(["get", *where, *ours, "--output=name"])
        if status == 0 and out.strip() and not self.module.check_mode:
            status, _out, errors = self.kubectl(["delete", *where, *ours])
        if status != 0 and not self.module.check_mode:
            self.module.fail_json(msg=f"{target} in {namespace} could not be deleted: {errors.strip()}")
        return status == 0 and bool(out.strip()), f"- {target} in {namespace}\n"

    def wait_for(self, entry: str) -> None:
        """Waits for a rollout; fails the task with pods and events when it does not complete."""
        namespace, _, target = entry.partition(" ")
        seconds = self.module.params["timeout"]
        where = ["--namespace", namespace]
        status, out, errors = self.kubectl([*where, "rollout", "status", f"--timeout={seconds}s", target])
        if status != 0:
            said = (errors or out).strip()
            self.module.fail_json(
                msg=f"{target} in {namespace} is not complete after {seconds} s: {said}",
                evidence={
                    "pods": self.kubectl([*where, "get", "pods", "--output=wide"])[1].splitlines(),
                    "events": self.kubectl([*where, "get", "events", "--sort-by=.lastTimestamp"])[1].splitlines()[-20:],
                },
            )


def expectations(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects as they are now, for pai_record."""
    named = [
        {
            "kind": "object",
            "name": f"{entry['kind'].lower()}/{entry['metadata']['name']}",
            "namespace": entry["metadata"].get("namespace", ""),
        }
        for entry in objects
    ]
    seen = object_versions(named)
    return [{**entry, "version": seen.get((entry["namespace"], entry["name"]), "")} for entry in named]


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "objects": {"type": "list", "elements": "dict", "required": True},
            "absent": {"type": "list", "elements": "str", "default": []},
            "wait_for": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 180},
            "kubeconfig": {"type": "path", "default": "/etc/kubernetes/admin.conf"},
            "kubectl": {"type": "path", "default": "/usr/local/bin/kubectl"},
        },
        supports_check_mode=True,
    )
    cluster = Cluster(module)
    changed, said, diff = cluster.apply(module.params["objects"])
    for entry in module.params["absent"]:
        deleted, line = cluster.delete(entry)
        changed, diff = changed or deleted, diff + (line if deleted else "")
    if not module.check_mode:
        for entry in module.params["wait_for"]:
            cluster.wait_for(entry)
    module.exit_json(
        changed=changed,
        msg=said,
        diff={"prepared": diff},
        managed=[] if module.check_mode else expectations(module.params["objects"]),
    )


if __name__ == "__main__":
    main()
