#!/usr/bin/python
"""Ansible module: a kubelet's certificate, asked for on its machine and signed on a control plane."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_node_certificate
short_description: Ask for a kubelet's certificate, or sign one
description:
  - With I(state=request), on the machine that joins, it makes a key that stays there and a request for the node's name.
  - With I(state=signed), on a control plane, it has the cluster sign a request that is for exactly that node.
  - So no credential travels that would let its holder become another node.
  - A signature admits the machine to the cluster. A removed machine that the API rejects becomes a node again. If
    another machine has its name, it stays rejected.
options:
  state: {description: What to do., type: str, choices: [request, signed], required: true}
  name: {description: Name of the node., type: str, required: true}
  request: {description: "The request (PEM), for I(state=signed).", type: str, default: ""}
  machine_id: {description: "Id of the machine, for I(state=signed).", type: str, default: ""}
  timeout: {description: Seconds until the cluster must have signed., type: int, default: 60}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Ask for the kubelet's certificate
  pai_node_certificate: {state: request, name: "{{ inventory_hostname }}"}
  register: __request
"""
RETURN = r"""
request: {description: The request (PEM)., type: str, returned: state is request}
certificate: {description: The certificate (PEM)., type: str, returned: state is signed}
authority: {description: The cluster's certificate authority (PEM)., type: str, returned: state is signed}
"""

import base64
import json
import os
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_kubectl import Kubectl, KubectlError
from ansible.module_utils.pai_node_login import LoginError, is_certificate, make_request, require_subject

AUTHORITY = "/etc/kubernetes/pki/ca.crt"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
# node -> machine id of those that were removed; an admission policy refuses them (operations/removed_machines.py)
REMOVED, NAMESPACE = "pai-removed-machines", "kube-system"


def csr(name: str, request: str) -> dict[str, Any]:
    """The object that the cluster signs."""
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": f"pai-install-{name}-{os.urandom(4).hex()}"},
        "spec": {
            "request": base64.b64encode(request.encode()).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
        },
    }


def signed(kubectl: Kubectl, wanted: dict[str, Any], timeout_s: float) -> str:
    """Returns the certificate (PEM) and deletes the request. Raises KubectlError."""
    name = wanted["metadata"]["name"]
    must(kubectl.run("create", "--filename=-", data=json.dumps(wanted), timeout_s=30))
    try:
        must(kubectl.call("certificate", "approve", name))
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = kubectl.get("certificatesigningrequest", name).get("status", {}).get("certificate", "")
            if found:
                return base64.b64decode(found).decode()
            time.sleep(0.3)
    finally:
        kubectl.call("delete", "certificatesigningrequest", name, "--ignore-not-found")
    raise KubectlError(f"the controller manager did not sign within {timeout_s:g} s")


def let_in(kubectl: Kubectl, name: str, machine_id: str) -> None:
    """Deletes the machine from the list of removed machines. Raises KubectlError."""
    where = ("configmap", REMOVED, f"--namespace={NAMESPACE}")
    answer = kubectl.call(
        "get", *where, "--ignore-not-found", "--output=jsonpath={.data." + name.replace(".", "\\.") + "}"
    )
    must(answer)
    if answer.message and machine_id in ("", answer.message):
        must(kubectl.call("patch", *where, "--type=merge", f"--patch={json.dumps({'data': {name: None}})}"))


def must(answer: Any) -> None:
    """Raises KubectlError when kubectl failed."""
    if not answer.ok:
        raise KubectlError(answer.message)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["request", "signed"], "required": True},
            "name": {"type": "str", "required": True},
            "request": {"type": "str", "default": ""},
            "machine_id": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 60},
        },
        required_if=[("state", "signed", ("request",))],
        supports_check_mode=True,
    )
    name, request = module.params["name"], module.params["request"]
    if module.check_mode:
        module.exit_json(changed=False, request="", certificate="", authority="")
    # what is made here is no change of the machine yet: the join that uses it is
    try:
        if module.params["state"] == "request":
            module.exit_json(changed=False, request=make_request(module.run_command, name))
        require_subject(module.run_command, request, name)
        certificate = signed(Kubectl(), csr(name, request), module.params["timeout"])
        let_in(Kubectl(), name, module.params["machine_id"])
        if not is_certificate(certificate):
            raise LoginError("what the cluster signed is no single certificate")
        with open(AUTHORITY, encoding="utf-8") as handle:
            module.exit_json(changed=False, certificate=certificate, authority=handle.read())
    except (LoginError, KubectlError, OSError) as error:
        module.fail_json(msg=f"no certificate for the node {name}: {error}")


if __name__ == "__main__":
    main()
