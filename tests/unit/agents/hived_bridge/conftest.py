"""A bridge between a HiveD that is played and an API server that keeps pods, all on loopback."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pai_install.agents.common.http import Response
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.__main__ import Bridge
from pai_install.agents.hived_bridge.settings import Settings, parse
from tests.unit.agents.hived_bridge.peers import ApiServer, Json, Peer, Reply, encoded, listening

RECORDED = json.loads((Path(__file__).parent / "recorded/answers.json").read_text())["answers"]
TOKEN = "planted-secret-of-the-service-account"
CONFIGURATION = "virtualClusters: {}\n"


def recorded(name: str) -> Response:
    """What a real HiveD answered."""
    return Response(RECORDED[name]["status"], RECORDED[name]["body"].encode())


@dataclass(repr=False)
class PlayedHived(Peer):
    """Answers by METHOD PATH; a list is answered one by one, the last one again and again."""

    answers: dict[str, list[Reply]] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)

    def says(self, verb: str, *answers: Response | Reply | Json) -> None:
        replies = [(200, encoded(it)) if isinstance(it, dict) else (it[0], it[1]) for it in answers]
        self.answers["GET /v1/inspect/affinitygroups/" if verb == "groups" else f"POST /v1/extender/{verb}"] = replies

    def has_gang(self, path: str, *nodes: str) -> None:
        """HiveD has given a gang its cells. path: the name of the gang as a part of a URL."""
        placement = {node: [0] for node in nodes}
        group = {"metadata": {"name": path}, "status": {"state": "Allocated", "physicalPlacement": placement}}
        self.answers[f"GET /v1/inspect/affinitygroups/{path}"] = [(200, encoded(group))]

    def reply(self, method: str, path: str, body: bytes) -> Reply:
        if path == "/":
            return recorded("root")
        if method == "POST":
            self.bodies.append(body)
        queue = self.answers.get(f"{method} {path}", [(404, b'"not played"')])
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def asked(self, verb: str) -> int:
        return self.calls.count(f"POST /v1/extender/{verb}")


@dataclass
class House:
    """Everything around one bridge. slept: delays that it took, in seconds."""

    bridge: Bridge
    hived: PlayedHived
    api: ApiServer
    log: io.StringIO
    settings: Settings
    slept: list[float]

    def post(self, verb: str, body: object, kind: str = "application/json") -> Reply:
        """One call of kube-scheduler."""
        return self.raw(f"/v1/extender/{verb}", encoded(body), kind)

    def raw(self, path: str, body: bytes | None, kind: str = "application/json", *, opened: bool = False) -> Reply:
        url = f"http://127.0.0.1:{self.bridge.ports[int(opened)]}{path}"
        request = urllib.request.Request(url, data=body, headers={"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 # the url is ours
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def get(self, path: str) -> Reply:
        return self.raw(path, None, opened=True)

    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def filter(self, name: str = "owner") -> Reply:
        return self.post("filter", filter_args(name))

    def count(self, name: str, **labels: str) -> float:
        return self.bridge.metrics.value(name, **labels)


def pod_of(name: str, spec: str = "") -> Json:
    """spec: the annotation for HiveD."""
    notes = {"annotations": {"hivedscheduler.microsoft.com/pod-scheduling-spec": spec}} if spec else {}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **notes}
    return {"metadata": metadata, "spec": {"containers": []}}


def filter_args(name: str = "owner", nodes: tuple[str, ...] = ("gpu-1", "gpu-2"), spec: str = "") -> Json:
    return {"Pod": pod_of(name, spec), "Nodes": None, "NodeNames": list(nodes)}


def preempt_args(name: str = "owner") -> Json:
    victims = {"gpu-1": {"Pods": [{"UID": "uid-of-another"}], "NumPDBViolations": 0}}
    return {"Pod": pod_of(name), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}


def bind_args(name: str = "owner") -> Json:
    return {"PodName": name, "PodNamespace": "default", "PodUID": f"uid-{name}", "Node": "gpu-1"}


def in_the_way(house: House) -> House:
    """The recorded situation: `owner` needs the nodes on which the gang `lent` runs."""
    house.api.add_pod("lent-0", node="gpu-1")
    house.api.add_pod("lent-1", node="gpu-2")
    house.api.add_pod("other-0", node="gpu-1")
    house.api.add_pod("other-1", node="gpu-2")
    house.hived.says("filter", recorded("filter preempt"))
    house.hived.says("preempt", recorded("preempt"))
    house.hived.says("groups", recorded("groups preempting"))
    return house


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between attempts it pauses shorter than it does."""
    monkeypatch.setattr("pai_install.agents.hived_bridge.eviction._PAUSE_S", 0.01)
    monkeypatch.setattr("pai_install.agents.hived_bridge.__main__._POLL_S", 0.01)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    server = ApiServer()
    server.maps["pai-hived/hived-last-good"] = {}
    with listening(server):
        yield server


@pytest.fixture
def hived() -> Iterator[PlayedHived]:
    peer = PlayedHived()
    with listening(peer):
        yield peer


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.fixture
def settings(hived: PlayedHived, api: ApiServer, token: Path, tmp_path: Path) -> Settings:
    (tmp_path / "wanted.yaml").write_text(CONFIGURATION)
    words = ["--extender-port=0", "--open-port=0", f"--hived-port={hived.port}", "--api-host=127.0.0.1", "--plain-api"]
    words += [f"--api-port={api.port}", f"--token={token}", f"--wanted={tmp_path}/wanted.yaml"]
    words += [f"--used={tmp_path}/used.yaml", "--namespace=pai-hived", "--record=hived-last-good"]
    words += ["--hived-timeout-s=10", "--api-timeout-s=10", "--eviction-wait-s=60"]
    return parse(words)


@pytest.fixture
def build(settings: Settings, hived: PlayedHived, api: ApiServer) -> Iterator[Callable[..., House]]:
    """Starts a bridge; settings may be given."""
    started: list[Bridge] = []

    def make(**changed: float) -> House:
        own, log = replace(settings, **changed), io.StringIO()  # type: ignore[arg-type]
        slept: list[float] = []
        bridge = Bridge(own, Log(log))
        bridge.extender.sleep = slept.append
        bridge.start()
        started.append(bridge)
        return House(bridge, hived, api, log, own, slept)

    yield make
    for bridge in started:
        bridge.stop()


@pytest.fixture
def house(build: Callable[..., House]) -> House:
    return build()


@pytest.fixture
def lent(house: House) -> House:
    """The recorded situation, and a bridge with time."""
    return in_the_way(house)
