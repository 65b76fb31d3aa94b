"""Storages on the workers of a cluster that a kubectl stand-in shows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import PLAYBOOKS, module_util
from tests.unit.modules.conftest import load

Run = Callable[..., dict[str, Any]]
RECORDED = json.loads((Path(__file__).parent / "recorded" / "storage_pods.json").read_text())
GRANT = {"storage": "data", "namespace": "vision", "claim": "data"}
# Pods are as the file `workers` says of their node (worker -> a recorded name); `down` stands for an API that is away.
KUBECTL = """#!{python}
import json, os, sys
from pathlib import Path
folder = Path({folder!r})
words = [word for word in sys.argv[1:] if not word.startswith(("--kubeconfig", "--request-timeout"))]
pods, recorded = folder / "pods", json.loads(Path({recorded!r}).read_text())
with (folder / "asked").open("a") as asked:
    asked.write(" ".join(words) + "\\n")
if (folder / "down").exists():
    sys.exit("The connection to the server was refused - did you specify the right host or port?")
workers = json.loads((folder / "workers").read_text())
value = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
there = [json.loads(path.read_text()) for path in sorted(pods.iterdir())]

def matches(pod):
    wanted = value.get("selector", "=").split("=")
    return wanted == ["", ""] or pod["metadata"]["labels"].get(wanted[0]) == wanted[1]

def answer(items):
    print(json.dumps({{"kind": "List", "items": items}}))

def now(pod):
    seen = recorded[workers[pod["spec"]["nodeName"]]]["pod"]
    return {{**pod, "status": seen["status"]}}

def events(pod):
    seen = recorded[workers[pod["spec"]["nodeName"]]]["events"]
    about = {{"namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"]}}
    return [{{**event, "involvedObject": about}} for event in seen]

if words[0] == "get" and "pods" in words:
    answer([now(pod) for pod in there if matches(pod)])
elif words[0] == "get" and "events" in words:
    answer([event for pod in there for event in events(pod)])
elif words[0] == "get":
    answer(json.loads((folder / [word for word in words[1:] if not word.startswith("-")][0]).read_text()))
elif words[0] == "logs":
    (pod,) = [pod for pod in there if pod["metadata"]["name"] == words[2]]
    print(recorded[workers[pod["spec"]["nodeName"]]]["log"])
elif words[0] == "create":
    status = 0
    for pod in json.load(sys.stdin)["items"]:
        name = pod["metadata"]["name"]
        if workers[pod["spec"]["nodeName"]] == "refused":
            print(f'Error from server (Forbidden): error when creating "STDIN": pods "{{name}}" is forbidden: '
                  "exceeded quota", file=sys.stderr)
            status = 1
            continue
        (pods / name).write_text(json.dumps(pod))
        most = max(int((folder / "most").read_text()), len(list(pods.iterdir())))
        (folder / "most").write_text(str(most))
        print(f"pod/{{name}} created")
    sys.exit(status)
elif words[0] == "delete":
    for word in words[3:]:
        path = pods / word
        if not word.startswith("-") and path.exists():
            stuck = workers[json.loads(path.read_text())["spec"]["nodeName"]] == "hangs writing"
            if "--force" in words or not stuck:
                path.unlink()
else:
    sys.exit(f"not expected: {{words}}")
"""


def node(name: str, ready: str = "True") -> dict[str, Any]:
    """A node."""
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": ready, "message": "kubelet"}]},
    }


def claim(phase: str = "Bound", name: str = "data") -> dict[str, Any]:
    """A PVC of group vision."""
    return {"metadata": {"namespace": "vision", "name": name}, "status": {"phase": phase}}


class Cluster:
    """Nodes, claims, and what happens to pods of each worker."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder, self._run = folder, run
        self.workers: list[str] = []
        (folder / "pods").mkdir()
        self.program = folder / "kubectl-stand-in"
        recorded = str(Path(__file__).parent / "recorded" / "storage_pods.json")
        self.program.write_text(KUBECTL.format(python=sys.executable, folder=str(folder), recorded=recorded))
        self.program.chmod(0o755)
        (folder / "most").write_text("0")
        self.has(claims=[claim()], nodes=None, one="succeeded", two="succeeded")

    def has(self, *, claims: Any = None, nodes: Any = None, **workers: str) -> None:
        """workers: name -> what happens to its pods, a name of the recordings."""
        if claims is not None:
            (self.folder / "persistentvolumeclaims").write_text(json.dumps(claims))
        if workers:
            (self.folder / "workers").write_text(json.dumps(workers))
        self.workers = list(workers) or self.workers
        (self.folder / "nodes").write_text(json.dumps(nodes if nodes is not None else list(map(node, self.workers))))

    def test(self, **words: Any) -> list[tuple[str, str, str]]:
        """(check, verdict, subject) of every finding; no pod is left."""
        given = {"grants": [GRANT], "workers": self.workers, "image": "busybox", "timeout": 1, "mib": 1}
        self.result = self._run("pai_storage_probe", **{**given, "kubectl": str(self.program), **words})
        assert self.result["changed"] is False
        assert list((self.folder / "pods").iterdir()) == []
        return sorted((row["id"], row["verdict"], row["subject"]) for row in self.result["findings"])

    def asked(self, word: str) -> list[str]:
        """The commands with that word."""
        return [line for line in (self.folder / "asked").read_text().splitlines() if word in line]


class Clock:
    """Goes on while the module waits, and stands while it asks: how long this machine takes says nothing."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """The module with a clock of its own, and little patience."""
    monkeypatch.setattr(module_util("pai_storage_verdict"), "FINAL_S", 3)

    def loaded(name: str) -> Any:
        module = load(PLAYBOOKS / "library" / f"{name}.py", f"pai_library_{name}")
        for word, value in {"EVENTS_S": 0, "SLOW_S": 2, "GRACE_S": 0, "REMOVAL_S": 2}.items():
            setattr(module, word, value)
        monkeypatch.setattr(module, "time", Clock())
        return module

    return loaded


@pytest.fixture
def storages(tmp_path: Path, run_module: Run) -> Cluster:
    """Two workers that work."""
    return Cluster(tmp_path, run_module)


def test_every_worker_says_what_it_measured(storages: Cluster) -> None:
    assert storages.test() == [("storage-use", "PASS", "one"), ("storage-use", "PASS", "two")]
    assert len(storages.asked("create ")) == 1


def test_a_worker_whose_mount_is_broken_is_named_and_the_others_are_not_held_up(storages: Cluster) -> None:
    storages.has(one="succeeded", two="nfs no export", three="no space", four="creating until the deadline")
    assert storages.test() == [
        ("storage-mount", "FAIL", "four"),
        ("storage-mount", "FAIL", "two"),
        ("storage-use", "FAIL", "three"),
        ("storage-use", "PASS", "one"),
    ]
    (two,) = [row for row in storages.result["findings"] if row["subject"] == "two"]
    assert two["value"].endswith("reason given by server: No such file or directory")


def test_a_mount_that_hangs_ends_with_its_time_and_its_pod_goes_by_force(
    storages: Cluster, snapshot: SnapshotAssertion
) -> None:
    storages.has(one="hangs writing", two="succeeded")
    assert storages.test() == [("storage-use", "FAIL", "one"), ("storage-use", "PASS", "two")]
    (one,) = [row for row in storages.result["findings"] if row["subject"] == "one"]
    assert one["message"] == snapshot
    assert storages.asked("--force")
    assert len(storages.asked("logs ")) == 1


def test_a_node_that_is_not_ready_gets_no_pod(storages: Cluster) -> None:
    storages.has(one="succeeded", two="succeeded", nodes=[node("one"), node("two", "Unknown")])
    assert storages.test(workers=["one", "two", "three"]) == [
        ("node-ready", "FAIL", "three"),
        ("node-ready", "FAIL", "two"),
        ("storage-mount", "UNKNOWN", "three"),
        ("storage-mount", "UNKNOWN", "two"),
        ("storage-use", "PASS", "one"),
    ]


def test_a_worker_that_starts_no_pod_is_told_once(storages: Cluster) -> None:
    storages.has(one="image missing")
    more = {**GRANT, "storage": "more"}
    assert storages.test(grants=[GRANT, more]) == [
        ("pod-start", "FAIL", "one"),
        ("storage-mount", "UNKNOWN", "one"),
        ("storage-mount", "UNKNOWN", "one"),
    ]


def test_a_claim_that_is_not_bound_needs_no_pods(storages: Cluster) -> None:
    storages.has(claims=[claim("Pending")])
    assert storages.test() == [("storage-claim", "FAIL", "cluster")]
    assert not storages.asked("create ")


def test_a_pod_that_the_api_refuses_is_told_in_its_words(storages: Cluster) -> None:
    storages.has(one="refused", two="succeeded")
    assert storages.test() == [
        ("pod-start", "FAIL", "one"),
        ("storage-mount", "UNKNOWN", "one"),
        ("storage-use", "PASS", "two"),
    ]
    assert any("exceeded quota" in row.get("value", "") for row in storages.result["findings"])


def test_an_api_that_does_not_answer_is_one_finding(storages: Cluster) -> None:
    (storages.folder / "down").write_text("")
    assert storages.test() == [("api", "FAIL", "cluster")]


def test_many_workers_are_tried_some_at_a_time_and_those_that_hang_hold_up_none(storages: Cluster) -> None:
    names = {f"w{number}": "nfs no export" if number < 4 else "succeeded" for number in range(12)}
    storages.has(**names)
    found = storages.test(parallel=3, timeout=20)
    assert [verdict for _check, verdict, _subject in found] == ["FAIL"] * 4 + ["PASS"] * 8
    assert 3 < int((storages.folder / "most").read_text()) <= 7, "those that wait for their mount give way to others"


def test_the_leftovers_of_an_interrupted_run_go_first(storages: Cluster) -> None:
    labels = {"pai-install/probe": "storage", "pai-install/run": "older"}
    old = {"metadata": {"namespace": "vision", "name": "old", "labels": labels}, "spec": {"nodeName": "one"}}
    (storages.folder / "pods" / "old").write_text(json.dumps(old))
    storages.test()
    lines = (storages.folder / "asked").read_text().splitlines()
    deleted = [number for number, line in enumerate(lines) if " old " in line]
    created = [number for number, line in enumerate(lines) if line.startswith("create ")]
    assert deleted[0] < created[0]


def test_a_storage_of_one_machine_is_tried_there_alone(storages: Cluster) -> None:
    assert storages.test(grants=[{**GRANT, "machine": "two"}]) == [("storage-use", "PASS", "two")]


def test_check_mode_makes_no_pods(storages: Cluster) -> None:
    assert storages.test(check=True) == []
    assert not (storages.folder / "asked").exists()
