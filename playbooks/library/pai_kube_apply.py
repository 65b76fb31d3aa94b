#!/usr/bin/python
"""Ansible module: Kubernetes objects, applied only when they differ."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_kube_apply
short_description: Server-side apply of objects, with diff, check mode and a wait for rollouts
options:
  objects: {description: The objects., type: list, elements: dict, required: true}
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


class Cluster:
    """kubectl with its kubeconfig."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def kubectl(self, words: list[str], data: str | None = None) -> tuple[int, str, str]:
        """Runs kubectl; status, output, errors."""
        base = [self.module.params["kubectl"], "--kubeconfig", self.module.params["kubeconfig"]]
        return self.module.run_command(base + words, data=data)  # type: ignore[no-any-return]

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
                pods=self.kubectl([*where, "get", "pods", "--output=wide"])[1].splitlines(),
                events=self.kubectl([*where, "get", "events", "--sort-by=.lastTimestamp"])[1].splitlines()[-20:],
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
            "wait_for": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 180},
            "kubeconfig": {"type": "path", "default": "/etc/kubernetes/admin.conf"},
            "kubectl": {"type": "path", "default": "/usr/local/bin/kubectl"},
        },
        supports_check_mode=True,
    )
    cluster = Cluster(module)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": module.params["objects"]})
    apply = ["--server-side", "--force-conflicts", "--field-manager=pai-install", "--filename=-"]
    status, diff, errors = cluster.kubectl(["diff", *apply], text)
    # 0: the same, 1: differs; more: kubectl could not tell, for example because the namespace is part of the objects
    changed = status != 0
    if changed and module.check_mode:
        module.exit_json(changed=True, msg=errors.strip() if status > 1 else "", diff={"prepared": diff}, managed=[])
    said = ""
    if changed:
        status, said, errors = cluster.kubectl(["apply", *apply], text)
        if status != 0:
            module.fail_json(msg=f"kubectl apply failed: {errors.strip()}")
    if not module.check_mode:
        for entry in module.params["wait_for"]:
            cluster.wait_for(entry)
    module.exit_json(
        changed=changed,
        msg=said.strip(),
        diff={"prepared": diff},
        managed=[] if module.check_mode else expectations(module.params["objects"]),
    )


if __name__ == "__main__":
    main()
