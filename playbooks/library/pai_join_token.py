#!/usr/bin/python
"""Ansible module: provide the data with which a machine joins a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_join_token
short_description: Make a join token without the right to become a node, and take it away after the join
description:
  - With a token a machine verifies the cluster and reads its settings. The certificates of pai_node_certificate decide
    who becomes which node. The rules by which kubeadm lets any holder of a token become any node are removed.
options:
  state: {description: Whether there is a token., type: str, choices: [present, absent], default: present}
  control_plane: {description: "Whether the machine becomes a control plane.", type: bool, default: false}
  ttl: {description: How long the token is valid at most., type: str, default: 30m}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Get a join token
  pai_join_token:
"""
RETURN = r"""
token: {description: The token., type: str, returned: present}
certificate_key: {description: Key of the certificates in the cluster (two hours)., type: str, returned: present}
encryption_config: {description: "The file with the key for secrets at rest.", type: str, returned: present}
ca_hash: {description: "sha256:... of the public key of the certificate authority.", type: str, returned: present}
removed: {description: Secrets that were taken away., type: list, elements: str, returned: absent}
"""

import base64
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_kubectl import Kubectl, KubectlError

KUBEADM = ["/usr/local/bin/kubeadm", "--kubeconfig", "/etc/kubernetes/admin.conf"]
# by the description one knows whose a token is: an admin's own stay
DESCRIPTION = "join by pai-install"
CERTIFICATES = "Proxy for managing TTL for the kubeadm-certs secret"
# of kubeadm: whoever holds a token may ask for a certificate of any node, and gets it
BOOTSTRAP_RULES = ("kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap")


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "ttl": {"type": "str", "default": "30m"},
            "control_plane": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        if module.params["state"] == "absent":
            module.exit_json(changed=False, removed=[] if module.check_mode else remove(module.params["control_plane"]))
        present(module)
    except KubectlError as error:
        module.fail_json(msg=f"join tokens: {error}")


def present(module: AnsibleModule) -> None:
    """Makes a token."""
    if module.check_mode:
        shown = encryption_config() if module.params["control_plane"] else ""
        module.exit_json(changed=False, token="", ca_hash="", certificate_key="", encryption_config=shown)
    # kubeadm init and upgrade make these rules again.
    close_bootstrap(Kubectl())
    # The token ends by itself if the run is killed before the removal.
    create = [*KUBEADM, "token", "create", "--ttl", module.params["ttl"], "--description", DESCRIPTION]
    out = module.run_command([*create, "--print-join-command"], check_rc=True)[1]
    token = re.search(r"--token (\S+)", out)
    ca_hash = re.search(r"--discovery-token-ca-cert-hash (\S+)", out)
    if not token or not ca_hash:
        module.fail_json(msg="kubeadm token create printed no join command")
    more = (
        shared_secrets(module) if module.params["control_plane"] else {"certificate_key": "", "encryption_config": ""}
    )
    # A token goes with the join: it is no change of the machine.
    module.exit_json(changed=False, token=token.group(1), ca_hash=ca_hash.group(1), **more)


def close_bootstrap(kubectl: Kubectl) -> None:
    """Takes the rules away by which a token makes its holder any node. Raises KubectlError."""
    answer = kubectl.call("delete", "clusterrolebinding", "--ignore-not-found", *BOOTSTRAP_RULES)
    if not answer.ok:
        raise KubectlError(answer.message)


def remove(control_plane: bool) -> list[str]:
    """Deletes our tokens and the uploaded certificates of control-plane nodes. Returns their names."""
    kubectl = Kubectl()
    descriptions = {DESCRIPTION, CERTIFICATES} if control_plane else {DESCRIPTION}
    secrets = kubectl.items("--namespace=kube-system", "secrets", "--field-selector=type=bootstrap.kubernetes.io/token")
    names = [entry["metadata"]["name"] for entry in secrets if description(entry) in descriptions]
    wanted = [*names, *(["kubeadm-certs"] if control_plane else [])]
    if wanted:
        answer = kubectl.call("--namespace=kube-system", "delete", "secret", "--ignore-not-found", *wanted)
        if not answer.ok:
            raise KubectlError(answer.message)
    return wanted


def description(secret: dict[str, Any]) -> str:
    """Returns the description of a token, or ""."""
    try:
        return base64.b64decode(secret.get("data", {}).get("description", "")).decode()
    except ValueError:
        return ""


def shared_secrets(module: AnsibleModule) -> dict[str, str]:
    """Returns secrets for control-plane nodes only: the keys of the uploaded certificates and of secrets at rest."""
    # Each upload encrypts the certificates with a new key, so one upload serves all machines of a run.
    argv = ["/usr/local/bin/kubeadm", "init", "phase", "upload-certs", "--upload-certs"]
    out = module.run_command([*argv, "--kubeconfig", "/etc/kubernetes/admin.conf"], check_rc=True)[1]
    key = re.search(r"^([0-9a-f]{64})$", out, re.MULTILINE)
    if not key:
        module.fail_json(msg="kubeadm upload-certs printed no key")
    return {"certificate_key": key.group(1), "encryption_config": encryption_config()}


def encryption_config() -> str:
    """Returns the file with the key for secrets at rest, or ""."""
    try:
        with open("/etc/kubernetes/encryption/config.json", encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    main()
