"""The program of the lab's jobs finds the others as the frameworks say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.ports import free_ports

PROGRAM = Path(__file__).parents[1] / "e2e" / "rendezvous.py"


def run(instances: Sequence[tuple[Mapping[str, str], Sequence[str]]], workers: int) -> list[str]:
    """Runs instances; what the last `workers` of them printed, which have to end. The others are stopped then."""
    started = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), *words], env=dict(environment), stdout=subprocess.PIPE, text=True
        )
        for environment, words in instances
    ]
    try:
        return [process.communicate(timeout=180)[0] for process in started[-workers:]]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.parametrize("told", ["arguments", "TF_CONFIG"])
def test_servers_and_workers(told: str) -> None:
    ports = free_ports(4)
    hosts = {"ps": [f"127.0.0.1:{it}" for it in ports[:2]], "worker": [f"127.0.0.1:{it}" for it in ports[2:]]}
    instances = []
    for role, index in (("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)):
        config = {"cluster": hosts, "task": {"type": role, "index": index}}
        words = [f"--{name}_hosts={','.join(addresses)}" for name, addresses in hosts.items()]
        words += [f"--job_name={role}", f"--task_index={index}"]
        instances.append(({}, words) if told == "arguments" else ({"TF_CONFIG": json.dumps(config)}, []))
    for index, said in enumerate(run(instances, 2)):
        assert {line for line in said.splitlines() if line.startswith(f"worker {index} met ")} == {
            f"worker {index} met {other}" for other in ("ps 0", "ps 1", f"worker {1 - index}")
        }
        assert f"worker {index} found y = 2.0 x + -1.0" in said


def test_ranks_meet_at_the_first() -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_ports(1)[0]), "WORLD_SIZE": "3"}
    said = run([({**place, "RANK": str(rank)}, []) for rank in range(3)], 3)
    for rank, text in enumerate(said):
        assert text.count(f"rank {rank} met rank") == 2
        assert f"rank {rank} found y = 2.0 x + -1.0" in text


def test_workers_meet_at_a_scheduler() -> None:
    place = {"MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(free_ports(1)[0]), "MS_WORKER_NUM": "2"}
    roles = [("MS_SCHED", 0), ("MS_WORKER", 0), ("MS_WORKER", 1)]
    said = run([({**place, "MS_ROLE": role, "MS_NODE_ID": str(index)}, []) for role, index in roles], 2)
    for index, text in enumerate(said):
        assert f"worker {index} met scheduler 0" in text
        assert f"worker {index} found y = 2.0 x + -1.0" in text


def test_one_alone() -> None:
    assert run([({}, ["--rate=0.1", "--model=trivial"])], 1) == ["alone found y = 2.0 x + -1.0\n"]
