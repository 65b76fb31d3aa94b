#!/usr/bin/python
"""Ansible module: what a machine needs to join the cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_join_token
short_description: Create a short-lived join token, with the digest of the cluster's certificate authority
options:
  control_plane: {description: "Whether the machine becomes a control plane.", type: bool, default: false}
  ttl: {description: How long the token is valid., type: str, default: 30m}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Get a join token
  pai_join_token:
"""
RETURN = r"""
token: {description: The token., type: str, returned: always}
certificate_key: {description: Key of the certificates in the cluster (two hours)., type: str, returned: always}
encryption_config: {description: "The file with the key for secrets at rest.", type: str, returned: always}
ca_hash: {description: "sha256:... of the public key of the certificate authority.", type: str, returned: always}
"""

import re

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={"ttl": {"type": "str", "default": "30m"}, "control_plane": {"type": "bool", "default": False}},
        supports_check_mode=True,
    )
    if module.check_mode:
        shown = encryption_config() if module.params["control_plane"] else ""
        module.exit_json(changed=False, token="", ca_hash="", certificate_key="", encryption_config=shown)
    argv = ["/usr/local/bin/kubeadm", "--kubeconfig", "/etc/kubernetes/admin.conf"]
    create = [*argv, "token", "create", "--ttl", module.params["ttl"], "--print-join-command"]
    out = module.run_command(create, check_rc=True)[1]
    token = re.search(r"--token (\S+)", out)
    ca_hash = re.search(r"--discovery-token-ca-cert-hash (\S+)", out)
    if not token or not ca_hash:
        module.fail_json(msg="kubeadm token create printed no join command")
    more = (
        shared_secrets(module) if module.params["control_plane"] else {"certificate_key": "", "encryption_config": ""}
    )
    # A token expires by itself: it is no change of the machine.
    module.exit_json(changed=False, token=token.group(1), ca_hash=ca_hash.group(1), **more)


def shared_secrets(module: AnsibleModule) -> dict[str, str]:
    """What only control planes may know: the key of the uploaded certificates, and of secrets at rest."""
    argv = ["/usr/local/bin/kubeadm", "init", "phase", "upload-certs", "--upload-certs"]
    out = module.run_command([*argv, "--kubeconfig", "/etc/kubernetes/admin.conf"], check_rc=True)[1]
    key = re.search(r"^([0-9a-f]{64})$", out, re.MULTILINE)
    if not key:
        module.fail_json(msg="kubeadm upload-certs printed no key")
    return {"certificate_key": key.group(1), "encryption_config": encryption_config()}


def encryption_config() -> str:
    """The file with the key for secrets at rest; empty where there is none yet."""
    try:
        with open("/etc/kubernetes/encryption/config.json", encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    main()
