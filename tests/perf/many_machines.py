"""What an `apply` without work costs the controller host at a site of many machines.

A program stands for ssh: it answers at once, as a machine that is as it should be. So the controller host is measured
and no machine. A real login costs the host its key exchange, too: docs/performance.md.
`python -m tests.perf.many_machines 10 100` prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.perf.big_site import write_site
from tests.perf.process import ROOT, cost_of, pai_install

EVERY_S = 0.2  # between two readings of the memory
# The machine's name is not known to ssh, its address is. What finds the interpreter runs here.
_SSH = """#!/bin/sh
for word; do host=$command; command=$word; done
case $command in
*BECOME-SUCCESS-*)
    key=${command#*BECOME-SUCCESS-}
    echo "BECOME-SUCCESS-${key%%[!a-z]*}"
    cat >/dev/null
    exec cat "ANSWERS/$host" ;;
*) exec /bin/sh -c "$command" ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Answered:
    """Cost of one `apply`. memory_mib: proportional memory of all its processes, at the peak."""

    machines: int
    wall_s: float
    cpu_s: float
    memory_mib: float
    tasks: int
    changed: int


def measure(machines: int) -> Answered:
    """Runs an `apply` without work. Raises CalledProcessError when a command fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site, programs, answers = folder / "site", folder / "bin", folder / "answers"
        for made in (site, programs, answers):
            made.mkdir()
        write_site(site, machines)
        with (site / "config.yaml").open("a") as config:  # as the lab, whose components are in the cache
            config.write("component_source: modules\n")
        write_ssh(programs / "ssh", answers)
        inventory = json.loads(cost_of(pai_install("inventory", "--show-secrets", "--site", str(site))).output)
        for address, facts in _facts(inventory):
            (answers / address).write_text(json.dumps({"changed": False, "ansible_facts": {"pai": facts}}))
        return _applied(site, programs, machines)


def write_ssh(path: Path, answers: Path) -> None:
    """The program in place of ssh. answers: folder with a file for each address."""
    path.write_text(_SSH.replace("ANSWERS", str(answers)))
    path.chmod(0o755)


def _facts(inventory: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Address -> facts of a machine with every role as the inventory wants it."""
    shared, hosts = inventory["all"]["vars"], inventory["all"]["hosts"]
    for host, own in hosts.items():
        variables = {**shared, **own}
        roles = {role: {"settings": found, "drift": []} for role, found in variables["pai_settings"].items()}
        facts = {"hostname": host, "machine_id": f"{host:>32}", "kubernetes": {"node": True}, "roles": roles}
        yield variables["ansible_host"], facts


def _applied(site: Path, programs: Path, machines: int) -> Answered:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT / 'installer'}{os.pathsep}{ROOT}"}
    argv = pai_install("apply", "--site", str(site), "--yes", "--format", "json")
    with tempfile.TemporaryFile("w+") as output:
        start = time.monotonic()
        child = subprocess.Popen(argv, stdout=output, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
        memory = _Memory(child.pid)
        memory.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        memory.ended.set()
        memory.join()
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, argv, output=text)
    counts = json.loads(text)["hosts"].values()
    return Answered(
        len(counts),
        round(wall, 2),
        round(usage.ru_utime + usage.ru_stime, 2),
        round(memory.peak_mib, 1),
        max(count["tasks"] for count in counts),
        sum(count["changed"] for count in counts),
    )


class _Memory(threading.Thread):
    """Reads the memory of a process and of all below it, until `ended`."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.ended = threading.Event()
        self.peak_mib = 0.0

    def run(self) -> None:
        while not self.ended.wait(EVERY_S):
            self.peak_mib = max(self.peak_mib, sum(map(memory_mib_of, tree_of(self._pid))))


def tree_of(root: int) -> set[int]:
    """Returns a process and its descendants."""
    parents = {int(path.name): _parent(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    found, size = {root}, 0
    while len(found) > size:
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def memory_mib_of(pid: int) -> float:
    """The pages of a process, those that it shares divided among all that share them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def growth(sizes: Iterable[int]) -> list[Answered]:
    """The cost at each size, in order."""
    return [measure(size) for size in sizes]


if __name__ == "__main__":
    print(json.dumps([asdict(it) for it in growth(map(int, sys.argv[1:]))], indent=1))  # noqa: T201 - the answer of a program of its own
