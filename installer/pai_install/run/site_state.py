"""The controller host's state of a site, with a copy in the cluster, so that a new controller host can take over.

A secret of the cluster contains it, encrypted in etcd as all secrets. A reader of this secret has all rights.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cluster.client import ApiError, ClusterClient, NoClusterError
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.plan.observation import Observation
from pai_install.run.state import StateFolder
from pai_install.site.model import Site
from pai_install.system.files import private_folder, write_secret

CHECK = "site-state"
SECRET = Ref("secret", "pai-install-site", "kube-system")
# files of the state folder that nothing can make again
KEPT = ("registry.json", "storages.json")


def keep_state(state: StateFolder, cluster: ClusterClient) -> tuple[Finding, ...]:
    """Writes the state to the cluster, if the site has an identity and the cluster has another state.

    Returns a finding if the cluster refuses. No other step depends on it.
    """
    wanted = _secret(state)
    # Without an authority, the site has nothing yet that another controller host would miss.
    if "registry.json" not in wanted["data"]:
        return ()
    try:
        (found,) = cluster.get([SECRET])
        if found is None or found.get("data") != wanted["data"]:
            cluster.apply([wanted], force=True)
    except (NoClusterError, ApiError) as error:
        message = "the cluster does not keep a copy of the site's state"
        remedy = "keep the folder .pai, or run pai-install backup when the API answers"
        return (Finding(CHECK, Verdict.WARN, "cluster", message, value=error.message, remedy=remedy),)
    return ()


def _secret(state: StateFolder) -> dict[str, Any]:
    there = [name for name in KEPT if (state.path / name).is_file()]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET.name, "namespace": SECRET.namespace},
        "type": "pai-install/site-state",
        "data": {name: base64.b64encode((state.path / name).read_bytes()).decode() for name in there},
    }


def take_over(
    site: Site, observation: Observation, state: StateFolder, cluster: ClusterClient, notify: Callable[[str], None]
) -> bool:
    """Reads the site's state from its cluster on a controller host without state. Returns whether it read any.

    Raises PaiError if a cluster may exist and its state is unreadable: with another state every machine would change.
    """
    if state.registry.exists() or not _has_cluster(site, observation):
        return False
    try:
        (found,) = cluster.get([SECRET])
    except (NoClusterError, ApiError) as error:
        raise _unknown(error.message) from error
    if found is None:
        notify("this host does not know the site's authority, and the cluster has no copy: another one is made")
        return False
    files = _files(found)
    private_folder(state.path)
    for name, text in files.items():
        write_secret(state.path / name, text)
    notify(f"this host takes the cluster over: {', '.join(files)} came from it")
    return bool(files)


def _has_cluster(site: Site, observation: Observation) -> bool:
    """Whether a control plane is in a cluster. Raises PaiError where none answers and workers are not new."""
    planes = [observation.machines[one.hostname] for one in site.control_planes if one.hostname in observation.machines]
    if not planes and any(seen.roles for seen in observation.machines.values()):
        raise _unknown("no control plane answers")
    return any(seen.kubernetes.control_plane and seen.kubernetes.joined for seen in planes)


def _files(secret: Mapping[str, Any]) -> dict[str, str]:
    """Returns our files in the secret and ignores others."""
    data = secret.get("data") or {}
    try:
        return {name: base64.b64decode(data[name], validate=True).decode() for name in KEPT if name in data}
    except (binascii.Error, UnicodeDecodeError, TypeError) as error:
        raise _unknown("the copy in the cluster is damaged") from error


def _unknown(why: str) -> PaiError:
    return PaiError(
        "cannot read the authority of the site: this host lacks it, and the cluster did not return it",
        code="site-authority-unknown",
        details=why,
        remedy=("restart a control-plane node, or restore .pai from a backup: pai-install restore FILE --only-site"),
        exit_code=ExitCode.UNREACHABLE,
    )
