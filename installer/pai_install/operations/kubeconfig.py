"""The step that brings the administrator's kubeconfig to the controller host."""

from __future__ import annotations

from pai_install.plan.certificates import KUBECONFIG, RENEW_WITHIN_DAYS
from pai_install.plan.model import HostStep, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site

_DAY_S = 86400
_ADMIN = "/etc/kubernetes/admin.conf"


def kubeconfig_step(site: Site, leader: str, why: str) -> Step:
    """Copies the one of a control plane."""
    dest = site.directory.resolve() / KUBECONFIG
    action = Playbook("kubeconfig.yml", {"control_plane_kubeconfig_dest": str(dest)})
    title = "Bring the administrator's kubeconfig to the controller host"
    return Step("kubeconfig", title, (HostStep(leader, (why,)),), action, looks=True)


def missing_kubeconfig(observation: Observation, leader: str) -> str:
    """Returns why the controller host needs the kubeconfig of the leader, which is in a cluster, or "".

    It needs one if it has none, if its own names a removed machine, or if its own expires soon and the leader's later.
    """
    seen = observation.machines.get(leader)
    if observation.box is None or seen is None or not (seen.kubernetes.control_plane and seen.kubernetes.joined):
        return ""
    own = next((entry for entry in observation.box if entry.path == KUBECONFIG), None)
    if own is None:
        return "the controller host has no kubeconfig of this cluster"
    if own.problem:
        return f"that of the controller host cannot be used: {own.problem}"
    expires = next((entry.expires for entry in seen.certificates if entry.path == _ADMIN), None)
    soon = own.expires is None or own.expires < observation.at + RENEW_WITHIN_DAYS * _DAY_S
    return "that of the controller host ends soon" if soon and expires and expires > (own.expires or 0) + _DAY_S else ""
