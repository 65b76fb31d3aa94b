"""The web page of a pod, such as a notebook: its label. Pure."""

from __future__ import annotations

import re

from pai_install.agents.common.values import Json, child, text

# label of a pod: the port of its web page, for its owner alone
WEB_PORT = "pai-install/web-port"


def web_port_of(pod: Json) -> int:
    """Returns the port of the web page in a pod, 0 for none."""
    return port_in(text(child(child(pod, "metadata"), "labels").get(WEB_PORT)))


def port_in(word: str) -> int:
    """Returns a port as Kubernetes writes it, 0 for anything else."""
    return int(word) if re.fullmatch("[1-9][0-9]{0,4}", word) and int(word) < 65536 else 0
