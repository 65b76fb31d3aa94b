"""What a distributed job does: every instance meets all others, then workers fit a line by a parameter server.

It runs in the images of the tests' jobs, and has its arguments from the variables that OpenPAI gives. A worker ends
when the line is found; a parameter server never does.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import socketserver
import sys
import threading
import time
from typing import Any

STEPS = 60
RATE = 0.1
LINE = (2.0, -1.0)
PATIENCE_S = 120


def tell(line: str) -> None:
    """Into the log, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Parameters:
    """What the server keeps, a slope and an offset, and who has been there."""

    def __init__(self) -> None:
        self.values = [0.0, 0.0]
        self.lock = threading.Lock()
        self.met: set[str] = set()

    def answer(self, question: dict[str, Any], me: str) -> object:
        """A greeting, the parameters, or those after a worker's step."""
        if "hello" in question:
            tell(f"{me} was met by {question['hello']}")
            self.met.add(question["hello"])
            return me
        with self.lock:
            for index, slope in enumerate(question.get("push", ())):
                self.values[index] -= RATE * slope
            return self.values


def serve(port: int, me: str, parameters: Parameters) -> None:
    """Answers others, a line of JSON each."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                said = parameters.answer(json.loads(line), me)
                self.wfile.write(json.dumps(said).encode() + b"\n")

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    server = Server(("", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class Peer:
    """A connection to another instance, made as soon as that is there."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.stream = socket.create_connection((host, int(port)), timeout=30).makefile("rwb")
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)
            else:
                return

    def ask(self, **question: object) -> Any:
        """Its answer."""
        self.stream.write(json.dumps(question).encode() + b"\n")
        self.stream.flush()
        return json.loads(self.stream.readline())


def fit(servers: list[Peer], share: int, pause_s: float) -> list[float]:
    """A worker's part: each step with the parameters as they are now, on points of its own."""
    points = [(x / 10, LINE[0] * x / 10 + LINE[1]) for x in range(-10 + share, 11)]
    server = servers[0]
    for _ in range(STEPS):
        slope, offset = server.ask(pull=True)
        errors = [(slope * x + offset - y, x) for x, y in points]
        server.ask(push=[sum(e * x for e, x in errors) / len(points) * 2, sum(e for e, _ in errors) / len(points) * 2])
        time.sleep(pause_s)
    found: list[float] = server.ask(pull=True)
    return found


def main() -> None:
    """Runs one instance."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--job_name", choices=("ps", "worker"), required=True)
    parser.add_argument("--pause", type=float, default=0.0)
    given = parser.parse_args()
    index = int(os.environ["PAI_TASK_INDEX"])
    hosts = {"ps": given.ps_hosts.split(","), "worker": given.worker_hosts.split(",")}
    me = f"{given.job_name} {index}"
    parameters = Parameters()
    serve(int(hosts[given.job_name][index].rpartition(":")[2]), me, parameters)
    peers: dict[str, list[Peer]] = {"ps": [], "worker": []}
    for name, addresses in hosts.items():
        for number, address in enumerate(addresses):
            peer = Peer(address)
            if (name, number) != (given.job_name, index):
                tell(f"{me} met {peer.ask(hello=me)}")
            peers[name].append(peer)
    # who ends before all others have found it keeps them from it
    while len(parameters.met) < sum(map(len, hosts.values())) - 1:
        time.sleep(0.1)
    if given.job_name == "worker":
        slope, offset = fit(peers["ps"], index, given.pause)
        tell(f"{me} found y = {slope:.1f} x + {offset:.1f}")
        return
    while True:
        time.sleep(3600)


main()
