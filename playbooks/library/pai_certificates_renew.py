#!/usr/bin/python
"""Ansible module: new certificates for a control plane, and programs that use them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_certificates_renew
short_description: Renew the certificates of kubeadm and restart their programs
description:
  - Renews all certificates when one expires within the given days. Keys of authorities stay.
  - The programs restart one after the other, each when the one before it answers again.
  - Refused while etcd would lose its quorum without this control plane.
  - Programs that are older than the certificates, because a run was interrupted, are restarted too.
options:
  within_days: {description: Renew when one ends within that many days., type: int, required: true}
  address: {description: "This control plane's address, as etcd knows it.", type: str, required: true}
  timeout: {description: Seconds for a program to answer again., type: int, default: 180}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Renew certificates that end within a month
  pai_certificates_renew: {within_days: 30, address: 10.0.0.1}
"""
RETURN = r"""
renewed: {description: Paths of certificates that were renewed., type: list, elements: str, returned: always}
restarted: {description: Programs that were restarted., type: list, elements: str, returned: always}
"""

import time
from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_api_ready import readiness
from ansible.module_utils.pai_certificates import KUBECONFIGS, PKI, certificates, reader
from ansible.module_utils.pai_etcd_members import EtcdError, at, members, sickness, stop_problem
from ansible.module_utils.pai_kubeadm_files import enforce_modes
from ansible.module_utils.pai_kubectl import API_PORT, Kubectl
from ansible.module_utils.pai_static_pods import restart_static_pod, until

KUBEADM = "/usr/local/bin/kubeadm"
AUTHORITIES = ("/ca.crt", "/front-proxy-ca.crt")
DAY_S = 86400
QUORUM_TIMEOUT_S = 90


def renewable(path: str) -> bool:
    """Whether kubeadm renews the certificate."""
    managed = path.startswith(PKI + "/") or path in [f"/etc/kubernetes/{name}.conf" for name in KUBECONFIGS]
    # A new authority would make all certificates of the cluster invalid at once.
    return managed and not path.endswith(AUTHORITIES)


def etcd_answers(address: str) -> bool:
    """Whether the member of etcd on this machine counts for the quorum."""
    try:
        own = at(members(), [address])
    except EtcdError:
        return False
    return bool(own) and not sickness(own[0])


def api_answers() -> bool:
    """Whether the API server on this machine is ready, asked with the new certificate of the administrator."""
    server = f"--server=https://127.0.0.1:{API_PORT}"
    return bool(Kubectl().call(server, "get", "--raw=/readyz", timeout_s=5).ok)


def programs(address: str) -> dict[str, Callable[[], bool]]:
    """Static pod -> whether its program answers, in the order in which they restart."""
    return {
        "etcd": lambda: etcd_answers(address),
        "kube-apiserver": api_answers,
        # Both listen on the loopback address, and their health needs no login.
        "kube-controller-manager": lambda: readiness("https://127.0.0.1:10257/healthz")[0],
        "kube-scheduler": lambda: readiness("https://127.0.0.1:10259/healthz")[0],
    }


def quorum_problem(address: str) -> str:
    """Returns why etcd cannot lose this member briefly, or "" if it can or the member is down."""
    try:
        found = members()
    except EtcdError:
        return ""
    sick = {member["id"]: why for member in found if (why := sickness(member))}
    problem: str = stop_problem(found, sick, address)
    return problem


def require_quorum(module: AnsibleModule) -> None:
    """Waits for the quorum of the other members, and fails without it."""
    address = module.params["address"]
    if not until(lambda: not quorum_problem(address), QUORUM_TIMEOUT_S):
        module.fail_json(
            msg=f"the programs of this machine restart, and without it etcd would have no quorum: "
            f"{quorum_problem(address)}",
            remedy="restore the named machine, then run pai-install certs renew again",
        )


def due(found: list[dict[str, Any]], within_days: int) -> list[str]:
    """The certificates to renew: all where one of them ends in time or cannot be read."""
    limit = time.time() + within_days * DAY_S
    ends = any(entry["expires"] is None or entry["expires"] < limit for entry in found)
    # All at once: the programs restart a single time.
    return [entry["path"] for entry in found] if ends else []


def renew(module: AnsibleModule) -> None:
    """Has kubeadm renew them. Fails the task with its words."""
    status, out, err = module.run_command([KUBEADM, "certs", "renew", "all"])
    if status != 0:
        module.fail_json(msg=f"kubeadm certs renew failed: {(err or out).strip()[-500:]}")
    enforce_modes()  # kubeadm lets everybody read them


def restart(module: AnsibleModule, names: list[str]) -> None:
    """Restarts one program after the other, and waits for each response."""
    answers = programs(module.params["address"])
    for name in names:
        restart_static_pod(name)
        if not until(answers[name], module.params["timeout"]):
            module.fail_json(
                msg=f"{name} does not answer {module.params['timeout']} s after its restart with new certificates",
                remedy=f"check crictl logs of {name} and journalctl --unit kubelet on this machine. Run the "
                "same command again to continue",
            )


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "within_days": {"type": "int", "required": True},
            "address": {"type": "str", "required": True},
            "timeout": {"type": "int", "default": 180},
        },
        supports_check_mode=True,
    )
    found = [entry for entry in certificates(module.run_command) if renewable(entry["path"])]
    paths = due(found, module.params["within_days"])
    unread = {reader(entry["path"]) for entry in found if entry["unread"]}
    # A run that was killed between renewal and restart has left programs with old certificates.
    names = [name for name in programs("") if paths or name in unread]
    if not names or module.check_mode:
        module.exit_json(changed=bool(names), renewed=paths, restarted=names)
    require_quorum(module)
    if paths:
        renew(module)
    restart(module, names)
    module.exit_json(changed=True, renewed=paths, restarted=names)


if __name__ == "__main__":
    main()
