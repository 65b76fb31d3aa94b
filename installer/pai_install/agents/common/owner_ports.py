"""Ports of a pod that the console opens for the owner of the job alone: their labels. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pai_install.agents.common.values import Json, child, text

# labels of a pod: the port of its web page, such as a notebook, and that of its SSH server
WEB_PORT, SSH_PORT = "pai-install/web-port", "pai-install/ssh-port"


def labelled_port(pod: Json, label: str) -> int:
    """Returns the port that a label of a pod says, 0 for none."""
    labels: Mapping[str, object] = child(child(pod, "metadata"), "labels")
    return port_in(text(labels.get(label)))


def owner_ports(pod: Json) -> tuple[int, ...]:
    """Returns all ports of a pod for its owner, each once."""
    return tuple(sorted({port for label in (WEB_PORT, SSH_PORT) if (port := labelled_port(pod, label))}))


def port_in(word: str) -> int:
    """Returns a port as Kubernetes writes it, 0 for anything else."""
    return int(word) if re.fullmatch("[1-9][0-9]{0,4}", word) and int(word) < 65536 else 0
