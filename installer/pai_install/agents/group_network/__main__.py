"""Entry point: `publish` on control planes, `guard` on every node."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pai_install.agents.common.api import Client, with_kubeconfig, with_token
from pai_install.agents.common.lease import Lease, serve, while_held
from pai_install.agents.common.log import Log
from pai_install.agents.common.values import Json, parse_object
from pai_install.agents.group_network.addresses import Directory
from pai_install.agents.group_network.guard import Guard
from pai_install.agents.group_network.publisher import Publisher
from pai_install.agents.group_network.ruleset import Rules

SETTINGS = Path("/etc/pai-install/group-network.json")
KUBECONFIG = Path("/etc/kubernetes/kubelet.conf")
IDENTITY = Path("/var/lib/kubelet/pki/kubelet-client-current.pem")
LEASE = "pai-group-network"


def publish(settings: Json) -> int:
    """Publishes until its token is old."""
    warn = Log().warn
    folder, credentials = Path(os.environ["RUNTIME_DIRECTORY"]), Path(os.environ["CREDENTIALS_DIRECTORY"])
    client = Client(with_token(settings["server"], folder / "token", credentials / "ca.crt"))

    def work(lease: Lease, until: float) -> None:
        publisher = Publisher(client, Directory(frozenset(settings["namespaces"])), warn)
        publisher.recall()
        publisher.watch()
        while_held(lease, until, publisher.step, warn)

    return serve(client, LEASE, work, warn)


def guard(settings: Json) -> int:
    """Runs without end. The rules stay when it ends."""
    ports = {protocol: tuple(found) for protocol, found in settings["ports"].items()}
    program = Guard(Client(with_kubeconfig(KUBECONFIG, IDENTITY)), Rules(settings["cidr"], ports), Log().warn)
    program.watch()
    while True:
        program.step()


def main() -> int:
    """Runs the program that the argument names."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = parse_object(SETTINGS.read_text())
    return {"publish": publish, "guard": guard}[sys.argv[1]](settings)


if __name__ == "__main__":
    code = main()
    # threads that wait for the API server have nothing to finish
    os._exit(code)
