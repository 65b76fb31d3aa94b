#!/usr/bin/python
"""Ansible module: what a machine needs to join the cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_join_token
short_description: Make a short-lived join token, with the digest of the cluster's certificate authority
options:
  ttl: {description: How long the token is valid., type: str, default: 30m}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Get a join token
  pai_join_token:
"""
RETURN = r"""
token: {description: The token., type: str, returned: always}
ca_hash: {description: "sha256:... of the public key of the certificate authority.", type: str, returned: always}
"""

import re

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(argument_spec={"ttl": {"type": "str", "default": "30m"}}, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False, token="", ca_hash="")
    argv = ["/usr/local/bin/kubeadm", "--kubeconfig", "/etc/kubernetes/admin.conf", "token", "create"]
    out = module.run_command([*argv, "--ttl", module.params["ttl"], "--print-join-command"], check_rc=True)[1]
    token = re.search(r"--token (\S+)", out)
    ca_hash = re.search(r"--discovery-token-ca-cert-hash (\S+)", out)
    if not token or not ca_hash:
        module.fail_json(msg="kubeadm token create printed no join command")
    # A token expires by itself: it is no change of the machine.
    module.exit_json(changed=False, token=token.group(1), ca_hash=ca_hash.group(1))


if __name__ == "__main__":
    main()
