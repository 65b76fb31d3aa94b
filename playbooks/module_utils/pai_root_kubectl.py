"""Root's kubectl on a control plane: ~root/.kube/config leads to the cluster, in any shell and over ssh without one.

A file or link that is there already is the admin's and stays.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

CONFIG = "/root/.kube/config"


def root_kubectl_problem() -> str:
    """Returns why root's kubectl finds no cluster, or "" if it has a kubeconfig of any origin."""
    return "" if os.path.lexists(CONFIG) else f"{CONFIG} is missing"


def link_root_kubectl(admin_conf: str) -> None:
    """Makes the link. No copy: admin.conf is renewed, and its key stays in one place."""
    os.makedirs(os.path.dirname(CONFIG), mode=0o700, exist_ok=True)
    os.symlink(admin_conf, CONFIG)


def root_kubectl_expectations(state: str) -> list[dict[str, Any]]:
    """For pai_state: on a control plane there is one."""
    return [] if state == "join" else [{"kind": "present", "path": CONFIG}]


def leads_to_the_cluster() -> bool:
    """Whether it is the link that is made here."""
    # A kubeconfig of the administrator's own may lead to another cluster, and stays.
    return os.path.islink(CONFIG) and os.readlink(CONFIG).startswith("/etc/kubernetes/")


def unlink_root_kubectl() -> None:
    """Takes the link away, and its folder where nothing else is in it."""
    os.unlink(CONFIG)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(CONFIG))
