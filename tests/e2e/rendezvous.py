"""What a distributed job does: every instance meets all others, then workers fit a line by a parameter server.

It runs in the images of the tests' jobs, and finds the others as a program of TensorFlow, PyTorch or MindSpore does: by
addresses in its arguments, by TF_CONFIG, or at the one place that MASTER_ADDR or MS_SCHED_HOST names. A worker ends
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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# so many at least, and then until the line is met: where several push at once, some steps are with older parameters
STEPS, MOST_STEPS, CLOSE = 60, 1000, 0.02
RATE = 0.1
LINE = (2.0, -1.0)
PATIENCE_S = 120
# where TensorFlow's servers listen when nothing else is said
PORT = 2222
# roles that work; the others serve them until they are stopped. Where all are alike, the first serves, too
WORK, ALIKE = ("worker", "rank"), "rank"


def tell(line: str) -> None:
    """Into the log, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Parameters:
    """What the server keeps, a slope and an offset, and who has been there, is where, and is through."""

    def __init__(self) -> None:
        self.values = [0.0, 0.0]
        self.lock = threading.Lock()
        self.met: set[str] = set()
        self.through: set[str] = set()
        self.places: dict[str, str] = {}

    def answer(self, question: dict[str, Any], me: str) -> object:
        """A greeting, who is where, the parameters, or those after a worker's step."""
        if "hello" in question:
            tell(f"{me} was met by {question['hello']}")
            self.met.add(question["hello"])
            return me
        if "join" in question:
            self.places[question["join"]] = question["at"]
            return self.places
        if "bye" in question:
            self.through.add(question["bye"])
            return me
        with self.lock:
            for index, slope in enumerate(question.get("push", ())):
                self.values[index] -= RATE * slope
            return self.values


def serve(port: int, me: str, parameters: Parameters) -> int:
    """Answers others, a line of JSON each; the port, where any would do (0)."""

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
    return int(server.server_address[1])


class Peer:
    """A connection to another instance, made as soon as that is there."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                connection = socket.create_connection((host, int(port)), timeout=30)
                self.from_here = str(connection.getsockname()[0])
                self.stream = connection.makefile("rwb")
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


def fit(server: Peer | None, share: int, rate: float, pause_s: float) -> tuple[float, float]:
    """A worker's part: each step with the parameters as they are now, on points of its own; the line that was found."""
    points = [(x / 10, LINE[0] * x / 10 + LINE[1]) for x in range(-10 + share % 10, 11)]
    alone = Parameters()

    def ask(**question: object) -> Any:
        return server.ask(**question) if server is not None else alone.answer(question, "")

    for step in range(MOST_STEPS):
        slope, offset = ask(pull=True)
        errors = [(slope * x + offset - y, x) for x, y in points]
        if step >= STEPS and max(abs(e) for e, _ in errors) < CLOSE:
            break
        change = sum(e * x for e, x in errors) / len(points) * 2, sum(e for e, _ in errors) / len(points) * 2
        ask(push=[rate / RATE * it for it in change])
        time.sleep(pause_s)
    slope, offset = ask(pull=True)
    return slope, offset


@dataclass(frozen=True)
class Cluster:
    """Role -> addresses, and who this is. meeting: where all come first, whose addresses are not known yet."""

    hosts: Mapping[str, list[str]]
    role: str
    index: int
    meeting: str = ""

    @property
    def all(self) -> list[tuple[str, int]]:
        """Roles and numbers of all instances."""
        return [(role, number) for role, addresses in self.hosts.items() for number in range(len(addresses))]


def cluster_of(given: argparse.Namespace, environment: Mapping[str, str]) -> Cluster | None:
    """What the arguments say, or else the variables; None for one that is alone."""
    if given.job_name is not None:
        hosts = {"ps": given.ps_hosts.split(","), "worker": given.worker_hosts.split(",")}
        whole = {role: [it if ":" in it else f"{it}:{PORT}" for it in names] for role, names in hosts.items()}
        return Cluster(whole, given.job_name, int(given.task_index or environment["PAI_TASK_INDEX"]))
    if "TF_CONFIG" in environment:
        config = json.loads(environment["TF_CONFIG"])
        hosts = {role.lower(): addresses for role, addresses in config["cluster"].items()}
        return Cluster(hosts, config["task"]["type"].lower(), int(config["task"]["index"]))
    if "MS_ROLE" in environment:
        meeting = f"{environment['MS_SCHED_HOST']}:{environment['MS_SCHED_PORT']}"
        hosts = {"scheduler": [meeting], "worker": [""] * int(environment["MS_WORKER_NUM"])}
        role = environment["MS_ROLE"].removeprefix("MS_").lower().replace("sched", "scheduler")
        return Cluster(hosts, role, int(environment["MS_NODE_ID"]), meeting)
    if "MASTER_ADDR" in environment:
        meeting = f"{environment['MASTER_ADDR']}:{environment['MASTER_PORT']}"
        hosts = {ALIKE: [""] * int(environment["WORLD_SIZE"])}
        return Cluster(hosts, ALIKE, int(environment["RANK"]), meeting)
    return None


def address_of(cluster: Cluster, me: str, port: int, parameters: Parameters) -> Mapping[str, str]:
    """Role and number -> address of all: as they were told, or as they tell at the meeting."""
    if not cluster.meeting:
        return {f"{role} {number}": cluster.hosts[role][number] for role, number in cluster.all}
    if cluster.index == 0 and cluster.role != "worker":
        parameters.places[me] = cluster.meeting
        while len(parameters.places) < len(cluster.all):
            time.sleep(0.1)
        return parameters.places
    there = Peer(cluster.meeting)
    while True:
        known: dict[str, str] = there.ask(join=me, at=f"{there.from_here}:{port}")
        if len(known) == len(cluster.all):
            return known
        time.sleep(0.1)


def main() -> None:
    """Runs one instance."""
    parser = argparse.ArgumentParser()
    for flag in ("--ps_hosts", "--worker_hosts", "--job_name", "--task_index"):
        parser.add_argument(flag)
    parser.add_argument("--pause", type=float, default=float(os.environ.get("PAUSE", "0")))
    parser.add_argument("--rate", type=float, default=RATE)
    given, _ = parser.parse_known_args()
    cluster = cluster_of(given, os.environ)
    if cluster is None:
        tell_line("alone", fit(None, 0, given.rate, given.pause))
        return
    me = f"{cluster.role} {cluster.index}"
    parameters = Parameters()
    first = not cluster.meeting or (cluster.index == 0 and cluster.role != "worker")
    own = cluster.meeting or cluster.hosts[cluster.role][cluster.index]
    port = serve(int(own.rpartition(":")[2]) if first else 0, me, parameters)
    peers = {}
    for name, address in address_of(cluster, me, port, parameters).items():
        peers[name] = Peer(address)
        if name != me:
            tell(f"{me} met {peers[name].ask(hello=me)}")
    # who ends before all others have found it keeps them from it
    while len(parameters.met) < len(peers) - 1:
        time.sleep(0.1)
    if cluster.role not in WORK:
        while True:
            time.sleep(3600)
    server = peers[next(f"{role} 0" for role in cluster.hosts if role != "worker")]
    tell_line(me, fit(server, cluster.index, given.rate, given.pause))
    server.ask(bye=me)
    # the first of those that are alike has the parameters
    while cluster.role == ALIKE and cluster.index == 0 and len(parameters.through) < len(peers):
        time.sleep(0.1)


def tell_line(me: str, found: tuple[float, float]) -> None:
    """What was found."""
    slope, offset = found
    tell(f"{me} found y = {slope:.1f} x + {offset:.1f}")


if __name__ == "__main__":
    main()
