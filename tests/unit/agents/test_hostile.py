"""Agents and hostile objects: each bad object is one line of the log, and all other objects are processed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from pai_install.agents.common.api import Access, ApiError, Client
from pai_install.agents.common.http import Response
from pai_install.agents.common.ledger import read
from pai_install.agents.common.records import Record, Removed, state_map
from pai_install.agents.common.utilization import CONDITION
from pai_install.agents.common.values import meta
from pai_install.agents.common.watch import follow
from pai_install.agents.gpu_use.__main__ import Meter
from pai_install.agents.gpu_use.smi import Smi
from pai_install.agents.group_network.addresses import Directory
from pai_install.agents.group_network.guard import Guard, nft
from pai_install.agents.group_network.publisher import MAPS, NODES, PODS, Publisher
from pai_install.agents.group_network.ruleset import Rules as PacketRules
from pai_install.agents.hived_bridge import messages
from pai_install.agents.job_recorder.__main__ import Recorder
from pai_install.agents.job_recorder.admissions import CLUSTER_QUEUES, WORKLOADS
from pai_install.agents.job_recorder.bookkeeper import Bookkeeper
from pai_install.agents.job_recorder.idle import WARNED
from pai_install.agents.job_recorder.ledger_files import LedgerFiles
from pai_install.agents.job_recorder.limits import Limit
from pai_install.agents.job_recorder.settings import Settings
from pai_install.agents.job_recorder.store import Rules
from pai_install.agents.job_recorder.watch import Changed, Watcher
from tests.unit.agents.group_network import objects as network
from tests.unit.agents.hostile import DEEP, VERY_DEEP, Object, encoded, hostile
from tests.unit.agents.job_recorder.objects import complete, job, pod

JOBS = "batch/jobs"
LIMITS = {"": (Limit("idle", 10, 3600, "stop", 1800), Limit("long", 0, 60, "warn", 60))}
USE = {"version": 1, "at": 1_790_000_000, "gpus": 2, "gpu": [[1_789_990_000, 100], [1_790_000_000, 3]]}
MEASURED = {"type": CONDITION, "status": "True", "message": json.dumps({**USE, "cpu": USE["gpu"]})}
WARNING = json.dumps({"what": "idle", "then": "stop", "at": 1_789_999_000, "grace": 1800, "done": False})


def seeds() -> tuple[list[Object], list[Object]]:
    """Jobs and pods to damage."""
    measured = pod(1, alone=True)
    measured["status"]["conditions"] = [MEASURED]
    measured["metadata"]["annotations"] = {WARNED: WARNING}
    return [job(notes={WARNED: WARNING}), job(status=complete())], [pod(0), pod(0, going=True), measured]


@dataclass(frozen=True)
class Played(Client):
    """An API server. lists: path -> pages of items. events: path -> lines of its watch. written: bodies of PUT."""

    lists: dict[str, Sequence[Object]] = field(default_factory=dict)
    events: dict[str, Sequence[Object]] = field(default_factory=dict)
    written: list[Object] = field(default_factory=list)

    @contextmanager
    def _open(self, method: str, path: str, body: Any = None, *_more: Any, **_named: Any) -> Iterator[Any]:
        place, _, query = path.partition("?")
        if method != "GET":
            json.dumps(body).encode()
            self.written.append(body or {method: path})
            yield BytesIO(b"{}")
        elif "watch=1" in query:
            lines = (encoded({"type": "MODIFIED", "object": item}) for item in self.events.pop(place, ()))
            yield BytesIO(b"\n".join((*lines, encoded({"type": "ERROR", "object": {"code": 410}}))))
        elif place == "/apis/batch":
            yield BytesIO(b'{"preferredVersion": {"groupVersion": "batch/v1"}}')
        elif "limit=" not in query:
            yield BytesIO(b"{}")  # a node, or a log
        else:
            yield BytesIO(encoded(self._page(place, parse_qs(query))))

    def _page(self, place: str, query: dict[str, list[str]]) -> Object:
        items, start = self.lists.get(place, ()), int(query.get("continue", ["0"])[0])
        end = start + int(query["limit"][0])
        kind, version = ("JobList", "batch/v1") if place.endswith("jobs") else ("PodList", "v1")
        metadata = {"continue": str(end)} if end < len(items) else {}
        return {"kind": kind, "apiVersion": version, "metadata": metadata, "items": items[start:end]}


def recorder(client: Played, warned: list[str]) -> Recorder:
    rules = Rules(7, 10_000, 1000, frozenset({"vision"}), frozenset((JOBS, "pods")))
    return Recorder(client, Settings("http://none", (JOBS,), rules, LIMITS), warned.append)


def watch_once(found: Recorder, client: Played) -> None:
    """What two watches report: all objects, then changes."""
    for resource in ("pods", JOBS):
        with pytest.raises(ApiError):
            Watcher(client, resource, found.events.put, found.warn).once()


def records(client: Played) -> dict[str, Object]:
    """Name of a job -> its record."""
    texts = [item["data"]["record"] for item in client.written if "record" in item.get("data", {})]
    return {found["job"]["metadata"]["name"]: found for found in map(json.loads, texts)}


@pytest.fixture
def client() -> Played:
    return Played(lambda: Access("http://none"))


@pytest.mark.parametrize("note", [DEEP, '{"what":' * 5000, json.dumps({"then": [], "at": 1, "what": 1})])
def test_deeply_nested_annotation_does_not_end_the_recorder(client: Played, note: str) -> None:
    warned: list[str] = []
    client.lists["/api/v1/pods"] = [pod(3, "orphan", alone=True) | {"kind": "Pod"}]
    client.lists["/api/v1/pods"][0]["metadata"]["annotations"] = {WARNED: note}
    client.lists["/apis/batch/v1/jobs"] = [job("good", "job-good")]
    found = recorder(client, warned)
    watch_once(found, client)
    found.step(0, lambda: 1_790_000_000)
    assert "good" in records(client)


@pytest.mark.parametrize("message", [DEEP, json.dumps({**USE, "gpu": "x"}), '{"at":' * 5000])
def test_deeply_nested_condition_does_not_end_the_recorder(client: Played, message: str) -> None:
    bad = pod(0)
    bad["status"]["conditions"] = [{**MEASURED, "message": message}]
    client.lists["/api/v1/pods"], client.lists["/apis/batch/v1/jobs"] = [bad], [job("train"), job("good", "job-good")]
    found = recorder(client, [])
    watch_once(found, client)
    found.step(0, lambda: 1_790_000_000)
    assert {"good", "train"} <= records(client).keys()


def test_deeply_nested_object_is_recorded_and_hides_no_other(client: Played) -> None:
    bad = job("deep", "job-deep", status={"conditions": VERY_DEEP})
    client.lists["/apis/batch/v1/jobs"] = [bad, job("good", "job-good")]
    found = recorder(client, [])
    watch_once(found, client)
    found.step(0, lambda: 1_790_000_000)
    assert {"good", "deep"} <= records(client).keys()


def test_records_that_the_recorder_did_not_write_are_not_read(client: Played) -> None:
    warned: list[str] = []
    good = state_map(Record(job("kept", "job-kept"), {}, Removed(1.0)))
    forged = state_map(Record(job("forged", "job-forged"), {}, Removed(1.0)))
    forged["metadata"]["name"] = "job-other"
    deep = {**good, "metadata": {**good["metadata"], "name": "deep"}, "data": {"record": DEEP}}
    client.lists["/api/v1/namespaces/vision/configmaps"] = [deep, forged, good]
    found = recorder(client, warned)
    found.recall(0)
    assert list(found.store._kept) == ["job-kept"]
    assert [line.split("/")[-1] for line in warned] == ["deep", "job-other"]


def test_events_that_cannot_be_processed_are_logged(client: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    found = recorder(client, warned)
    see, client.lists["/apis/batch/v1/jobs"] = found.store.see_job, [job("bad", "job-bad"), job("good", "job-good")]

    def fail(item: Object, now: float) -> None:
        if item["metadata"]["name"] == "bad":
            raise KeyError("something new")
        see(item, now)

    monkeypatch.setattr(found.store, "see_job", fail)
    watch_once(found, client)
    found.step(0, lambda: 1_790_000_000)
    assert "good" in records(client)
    assert len(warned) == 1
    assert "Job vision/bad" in warned[0]


def feed_recorder(client: Played, count: int) -> None:
    """A recorder that sees so many hostile objects, in batches."""
    jobs, pods = seeds()
    warned: list[str] = []
    # a page must be read within the client's time limit, also on a busy host
    found, batch = recorder(client, warned), 250 if count > 10_000 else 25
    for number in range(count // (4 * batch) + 1):
        bad_jobs = list(hostile(jobs, 2 * batch, number))
        bad_pods = list(hostile(pods, 2 * batch, -number - 1))
        good = job(f"good-{number}", f"job-good-{number}")
        client.lists["/apis/batch/v1/jobs"] = [*bad_jobs[:batch], good]
        client.events["/apis/batch/v1/jobs"] = bad_jobs[batch:]
        client.lists["/api/v1/pods"], client.events["/api/v1/pods"] = bad_pods[:batch], bad_pods[batch:]
        client.written.clear()
        watch_once(found, client)
        now = 1_790_000_000 + 100 * number
        found.step(0, lambda now=now: now)  # type: ignore[misc]
        assert records(client)[f"good-{number}"]["job"]["metadata"]["uid"] == f"job-good-{number}"
        assert max(len(json.dumps(item)) for item in client.written) < 1024 * 1024
    assert [line for line in warned if "cannot process" in line] == []


def test_recorder_takes_hostile_objects(client: Played) -> None:
    feed_recorder(client, 400)


@pytest.mark.soak
def test_recorder_takes_100000_hostile_objects(client: Played) -> None:
    feed_recorder(client, 100_000)


def feed_meter(client: Played, count: int, folder: Path) -> None:
    """A meter whose node has so many hostile pods, in batches."""
    warned: list[str] = []
    meter = Meter(client, "g1", Smi(["false"]), warned.append, folder / "none", folder)
    batch = 500 if count > 10_000 else 50
    for number in range(count // batch + 1):
        client.lists["/api/v1/pods"] = [pod(0, "good"), *hostile(seeds()[1], batch, number)]
        client.written.clear()
        meter.end_minute(1_790_000_000 + 60 * number, whole=True)
        for item in meter.running:
            meter.minute[meta(item, "namespace"), meta(item, "name")] = {"GPU-1": [1.0] * 4}
        meter.end_minute(1_790_000_030 + 60 * number, whole=True)
        assert any(meta(item, "uid") == "good" for item in client.written)
    assert warned == []


def test_meter_takes_hostile_pods(client: Played, tmp_path: Path) -> None:
    feed_meter(client, 200, tmp_path)


@pytest.mark.soak
def test_meter_takes_100000_hostile_pods(client: Played, tmp_path: Path) -> None:
    feed_meter(client, 100_000, tmp_path)


def feed_book(count: int, folder: Path) -> None:
    """A ledger beside so many hostile objects of all kinds: it counts the good pod, and each line can be read."""
    warned: list[str] = []
    rules = Rules(7, 10_000, 1000, frozenset({"vision"}), frozenset((JOBS, "pods")))
    files, client = LedgerFiles(folder, 13), Played(lambda: Access("http://none"))
    keeper = Bookkeeper(client, Settings("http://none", (JOBS,), rules), files, warned.append)
    keeper.recall()
    condition = {"type": "Preempted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z"}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    metadata = {"name": "w", "namespace": "vision", "creationTimestamp": "2026-01-01T00:00:00Z"}
    quota = {"flavors": [{"name": "a", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "4"}]}]}
    workload = {"metadata": {**metadata, "ownerReferences": [owner]}, "status": {"conditions": [condition]}}
    queue = {"metadata": metadata, "spec": {"resourceGroups": [quota]}}
    jobs, pods = seeds()
    kinds = {JOBS: jobs, "pods": pods, WORKLOADS: [workload], CLUSTER_QUEUES: [queue]}
    for place, (resource, found) in enumerate(kinds.items()):
        for number, item in enumerate(hostile(found, count // len(kinds), place)):
            keeper.events.put(Changed(resource, number % 3 == 0, item))
        keeper.step(0, lambda: 1_790_000_000)
    good = pod(7, "good")
    good["status"]["startTime"] = "2026-01-01T00:00:05Z"
    keeper.events.put(Changed("pods", False, good))
    keeper.step(0, lambda: 1_790_000_100)
    keeper.step(0, lambda: 1_790_000_200)
    ledger = read(files.lines(9))
    assert ledger.damaged == 0
    assert ledger.holds["good"].devices == 2
    assert [line for line in warned if "cannot" in line] == []


def test_book_takes_hostile_objects(tmp_path: Path) -> None:
    feed_book(2000, tmp_path)


def test_book_begins_again_when_its_files_could_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    rules = Rules(7, 10_000, 1000, frozenset({"vision"}), frozenset((JOBS, "pods")))
    keeper = Bookkeeper(
        Played(lambda: Access("http://none")),
        Settings("http://none", (), rules),
        LedgerFiles(tmp_path, 13),
        warned.append,
    )
    unreadable = tmp_path / "ledger-2026-11.jsonl"
    unreadable.mkdir()

    def end(_wait_s: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(keeper, "watch", lambda: None)
    monkeypatch.setattr(keeper, "step", end)
    monkeypatch.setattr("pai_install.agents.job_recorder.bookkeeper.time.sleep", lambda _s: unreadable.rmdir())
    with pytest.raises(KeyboardInterrupt):
        keeper.run()
    assert len(warned) == 1
    assert not unreadable.exists()


@pytest.mark.soak
def test_book_takes_100000_hostile_objects(tmp_path: Path) -> None:
    feed_book(100_000, tmp_path)


def feed_bridge(count: int) -> None:
    """Calls of kube-scheduler and answers of HiveD: each is read, or refused."""
    call = {"Pod": pod(0), "NodeNames": ["g1"], "NodeNameToMetaVictims": {"g1": {"Pods": [{"UID": "uid-1"}]}}}
    bind = {"PodName": "p", "PodNamespace": "n", "PodUID": "uid-1", "Node": "g1"}
    placement = {"allocatedPods": ["uid-1"], "physicalPlacement": {"g1": [0]}}
    groups = {"items": [{"metadata": {"name": "a"}, "status": placement}]}
    read = (messages.filter_call, messages.preempt_call, messages.bind_call)
    answered = (messages.verdict, messages.victims, messages.gangs)
    for item in hostile([call, bind, groups, {"FailedNodes": {"g1": "so"}}], count):
        body = encoded(item)
        for parse in read:
            with suppress(messages.RefusedError):
                found = parse(body)
                assert isinstance(found, str) or messages.preemption_of(found)
        for judge in answered:
            with suppress(messages.RefusedError):
                judge(Response(200, body))


def test_bridge_takes_hostile_messages() -> None:
    feed_bridge(600)


@pytest.mark.soak
def test_bridge_takes_100000_hostile_messages() -> None:
    feed_bridge(100_000)


def feed_publisher(client: Played, count: int) -> None:
    """Addresses of good pods beside so many hostile pods and nodes: each set has addresses and nothing else."""
    warned: list[str] = []
    publisher = Publisher(client, Directory(frozenset({"vision", "speech"})), warned.append)
    paged = {**network.pod("paged", "speech", "10.200.1.9"), "kind": "Pod"}
    paged["metadata"]["labels"] = {"pai-install/web-port": "8888", "pai-install/ssh-port": "22"}
    batch = 500 if count > 10_000 else 50
    for number in range(count // (4 * batch) + 1):
        pods = list(hostile([network.pod("p", "vision", "10.200.1.7"), paged], 2 * batch, number))
        nodes = list(hostile([network.node("n2", "10.200.3.0/25", "172.30.0.2")], 2 * batch, -number - 1))
        good = network.pod("good", "vision", f"10.200.2.{number % 100 + 5}", node="good")
        machine = network.node("good", "10.200.2.0/25", "172.30.0.9")
        client.lists.update({"/api/v1/pods": [*pods[:batch], good], "/api/v1/nodes": [*nodes[:batch], machine]})
        client.lists[MAPS] = list(hostile([{"metadata": {"name": "group.old"}, "data": {"addresses": ""}}], 20, number))
        client.events.update({"/api/v1/pods": pods[batch:], "/api/v1/nodes": nodes[batch:]})
        publisher.recall()
        for kind in (PODS, NODES):
            with pytest.raises(ApiError):
                follow(
                    client,
                    f"/api/v1/{kind}",
                    {},
                    lambda items, kind=kind: publisher.events.put(lambda: publisher.take_list(kind, items)),  # type: ignore[misc]
                    lambda gone, item, kind=kind: publisher.events.put(  # type: ignore[misc]
                        lambda: publisher.take(kind, item, deleted=gone)
                    ),
                )
        publisher.step(0)
        assert good["status"]["podIP"] in publisher.known["group.vision"].split()
        assert "172.30.0.9" in publisher.known["machines"].split()
        words = " ".join(item["data"]["addresses"] for item in client.written if "data" in item)
        assert set(words) <= set("0123456789.: ")
        assert f"{MAPS}/" not in [item.get("DELETE") for item in client.written]
    assert warned == []


def test_publisher_takes_hostile_objects(client: Played) -> None:
    feed_publisher(client, 400)


@pytest.mark.soak
def test_publisher_takes_100000_hostile_objects(client: Played) -> None:
    feed_publisher(client, 100_000)


def feed_guard(client: Played, count: int) -> None:
    """A packet filter after so many hostile sets: nft takes it, and the members of a good group are in it."""
    warned: list[str] = []
    loaded: list[str] = []

    def run(*words: str, rules: str = "") -> None:
        if rules:
            loaded.append(rules)

    guard = Guard(client, PacketRules(network.CIDR, {"tcp": (10250,)}), warned.append, run)
    names = (
        "group.speech",
        f"group.{'x' * 240}",
        'group."; flush ruleset',
        "web",
        "control-planes",
        "others",
        "machines",
    )
    sets = [{"metadata": {"name": name}, "data": {"addresses": "10.200.1.7 10.200.1.7:80"}} for name in names]
    good = [{"metadata": {"name": name}, "data": {"addresses": "10.200.2.5"}} for name in (*names[-2:], "group.vision")]
    batch = 500 if count > 10_000 else 50
    for number in range(count // (2 * batch) + 1):
        bad = list(hostile(sets, 2 * batch, number))
        client.lists[MAPS], client.events[MAPS] = [*bad[:batch], *good], [*bad[batch:], *good]
        with pytest.raises(ApiError):
            follow(
                client,
                MAPS,
                {},
                lambda items: guard.events.put(lambda: guard.take_list(items)),
                lambda gone, item: guard.events.put(lambda: guard.take(item, deleted=gone)),
            )
        guard.step(0)
        assert "10.200.2.5 : goto group" in loaded[-1]
        if os.geteuid() == 0 and shutil.which("nft"):
            nft("--check", "-f", "-", rules=loaded[-1])
    assert warned == []


def test_guard_takes_hostile_sets(client: Played) -> None:
    feed_guard(client, 400)


@pytest.mark.soak
def test_guard_takes_100000_hostile_sets(client: Played) -> None:
    feed_guard(client, 100_000)
