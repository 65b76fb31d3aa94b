#!/usr/bin/python
"""Ansible module: how containerd connects this node's pods."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_pod_network
short_description: Write the CNI configuration of this node, for the addresses that the cluster gave it
description:
  - Fills the node's range of addresses into the template that role container_runtime leaves on the machine.
  - Files of others in /etc/cni/net.d are neither read nor touched.
  - Does nothing on a machine that is no node.
options:
  ask:
    description: Whether to ask the cluster also where a range is known from an earlier run, as after a join.
    type: bool
    default: false
  timeout: {description: Seconds until the cluster must have given a range., type: int, default: 120}
  role: {description: Role whose record is written. Default is no record., type: str, default: ""}
  settings: {description: As in pai_state., type: dict, default: {}}
  managed: {description: As in pai_state., type: list, elements: raw, default: []}
  notes: {description: As in pai_state., type: dict, default: {}}
  packages: {description: As in pai_state., type: list, elements: str, default: []}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Connect the node's pods
  pai_pod_network: {ask: true}
"""
RETURN = r"""
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_kubectl import KubectlError
from ansible.module_utils.pai_pod_network import (
    assigned_cidr,
    configuration,
    current,
    expectation,
    is_node,
    present_cidr,
)
from ansible.module_utils.pai_pod_network import write as write_configuration
from ansible.module_utils.pai_role_record import RECORD_OPTIONS, write_record


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "ask": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 120},
            **RECORD_OPTIONS,
        },
        supports_check_mode=True,
    )
    if not is_node():
        module.exit_json(changed=bool(write_record(module, [])["given_back"]), managed=[])
    before = current()
    known = "" if module.params["ask"] else present_cidr(before)
    try:
        text = configuration(known or assigned_cidr(0 if module.check_mode else module.params["timeout"]))
    except (KubectlError, OSError) as error:
        module.fail_json(msg=f"the addresses of this node's pods are not known: {error}")
    if before != text and not module.check_mode:
        write_configuration(text)
    managed = [expectation(text)]
    record = write_record(module, managed)
    changed = before != text or bool(record["given_back"])
    module.exit_json(changed=changed, managed=managed, diff={"before": before, "after": text})


if __name__ == "__main__":
    main()
