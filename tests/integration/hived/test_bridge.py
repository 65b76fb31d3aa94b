"""The bridge before a real HiveD, with an API server of ours behind both. PAI_HIVED names HiveD's program.

How one is made of its sources: docs/decisions/010-a-bridge-between-kube-scheduler-and-hived.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pai_install.agents.common.http import Endpoint, HttpError
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.__main__ import Bridge
from pai_install.agents.hived_bridge.settings import parse
from tests.hived_program import NEEDS_HIVED, PROGRAM
from tests.ports import free_ports
from tests.unit.agents.hived_bridge.peers import ApiServer, Json, encoded, listening

pytestmark = NEEDS_HIVED
NODES = ("gpu-1", "gpu-2")
CONFIGURATION = """
kubeApiServerAddress: http://127.0.0.1:{api}
webServerAddress: 127.0.0.1:{hived}
physicalCluster:
  cellTypes:
    A100-NODE: {{childCellType: A100, childCellNumber: 4, isNodeLevel: true}}
    A100-POOL: {{childCellType: A100-NODE, childCellNumber: 2}}
  physicalCells:
    - {{cellType: A100-POOL, cellChildren: [{{cellAddress: gpu-1}}, {{cellAddress: gpu-2}}]}}
virtualClusters:
  research: {{virtualCells: [{{cellType: A100-POOL.A100-NODE, cellNumber: {research}}}]}}
  default: {{virtualCells: [{{cellType: A100-POOL.A100-NODE, cellNumber: 1}}]}}
"""


@dataclass
class TwoNodes:
    """HiveD, restarted whenever it ends, the bridge, and pods."""

    folder: Path
    api: ApiServer
    ports: tuple[int, ...]
    bridge: Bridge | None = None
    program: subprocess.Popen[bytes] | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def wanted(self) -> Path:
        return self.folder / "wanted.yaml"

    def text(self, research: int = 1) -> str:
        return CONFIGURATION.format(api=self.api.port, hived=self.ports[0], research=research)

    def supervise(self) -> None:
        while not self.ended.is_set():
            with (self.folder / "hived.log").open("ab") as log:
                environment = {**os.environ, "CONFIG": str(self.folder / "used.yaml")}
                self.program = subprocess.Popen([PROGRAM], env=environment, stdout=log, stderr=log)
                self.program.wait()
            time.sleep(0.2)

    def post(self, verb: str, body: Json) -> Json:
        headers = {"Content-Type": "application/json"}
        answer = Endpoint("127.0.0.1", self.ports[1], 15).call("POST", f"/v1/extender/{verb}", encoded(body), headers)
        found = json.loads(answer.body)
        assert isinstance(found, dict)
        return found

    def filter(self, pod: Json) -> Json:
        return self.post("filter", {"Pod": pod, "Nodes": None, "NodeNames": list(NODES)})

    def schedule(self, pod: Json) -> str:
        """As kube-scheduler: filter, then bind; the node, empty where the pod waits."""
        metadata = pod["metadata"]
        nodes = self.filter(pod).get("NodeNames")
        if not nodes:
            return ""
        names = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        assert self.post("bind", {**names, "Node": nodes[0]}) == {"Error": ""}
        return str(nodes[0])

    def pod(self, name: str, cluster: str, priority: int, cells: int, gang: tuple[str, int] | None = None) -> Json:
        spec: dict[str, Any] = {"virtualCluster": cluster, "priority": priority, "leafCellNumber": cells}
        spec |= {"leafCellType": "A100", "ignoreK8sSuggestedNodes": False}
        if gang:
            members = [{"podNumber": gang[1], "leafCellNumber": cells}]
            spec["affinityGroup"] = {"name": gang[0], "members": members}
        annotations = {"hivedscheduler.microsoft.com/pod-scheduling-spec": json.dumps(spec)}
        limits = {"hivedscheduler.microsoft.com/pod-scheduling-enable": "1"}
        containers = [{"name": "main", "image": "none", "resources": {"limits": limits}}]
        return self.api.add_pod(name, metadata={"annotations": annotations}, spec={"containers": containers})

    def answers(self) -> bool:
        try:
            return Endpoint("127.0.0.1", self.ports[0], 1).call("GET", "/").status == 200
        except HttpError:
            return False


def eventually(holds: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoNodes]:
    for name, seconds in (("SETTLE_S", 2.0), ("TRIAL_S", 4.0)):
        monkeypatch.setattr(f"pai_install.agents.hived_bridge.configuration.{name}", seconds)
    monkeypatch.setattr("pai_install.agents.hived_bridge.__main__._LOOK_S", 0.2)
    api = ApiServer()
    api.maps["pai-hived/hived-last-good"] = {}
    for node in NODES:
        api.add_node(node)
    with listening(api):
        it = TwoNodes(tmp_path, api, free_ports(3))
        it.wanted.write_text(it.text())
        (tmp_path / "token").write_text("token")
        it.bridge = Bridge(parse(words(it)), Log())
        it.bridge.start()
        supervisor = threading.Thread(target=it.supervise)
        supervisor.start()
        eventually(it.answers)
        yield it
        it.ended.set()
        assert it.program is not None
        it.program.kill()
        supervisor.join()
        it.bridge.stop()


def words(it: TwoNodes) -> list[str]:
    hived, extender, opened = it.ports
    ports = [f"--hived-port={hived}", f"--extender-port={extender}", f"--open-port={opened}"]
    files = [f"--wanted={it.wanted}", f"--used={it.folder}/used.yaml", f"--token={it.folder}/token"]
    api = ["--api-host=127.0.0.1", f"--api-port={it.api.port}", "--plain-api"]
    return [*ports, *files, *api, "--namespace=pai-hived", "--record=hived-last-good"]


def scheduled(it: TwoNodes, pod: Json) -> Callable[[], bool]:
    return lambda: it.schedule(pod) != ""


def test_fragmented_nodes_are_cleared_for_the_owner(two: TwoNodes) -> None:
    """One cell lent here and two there; the owner's gang of 2 x 2 needs one whole node of its own."""
    lent = [two.pod("lent-a", "default", -1, 1), two.pod("lent-b", "default", -1, 2)]
    for pod, node in zip(lent, NODES, strict=True):
        # each on a node of its own: kube-scheduler offers it that one alone
        answer = two.post("filter", {"Pod": pod, "Nodes": None, "NodeNames": [node]})
        assert answer["NodeNames"] == [node]
        assert two.schedule(pod) == node
    owners = [two.pod(f"owner-{index}", "research", 100, 2, ("owner", 2)) for index in range(2)]
    for pod in owners:
        eventually(scheduled(two, pod))
    assert len({pod["spec"]["nodeName"] for pod in owners}) == 1
    assert len(two.api.deleted) == 1


def test_gang_over_both_nodes_goes_whole_at_one_call(two: TwoNodes) -> None:
    lent = [two.pod(f"lent-{index}", "default", -1, 3, ("lent", 2)) for index in range(2)]
    for pod in lent:
        eventually(scheduled(two, pod))
    assert {pod["spec"]["nodeName"] for pod in lent} == set(NODES)
    owner = two.pod("owner", "research", 100, 4)
    eventually(lambda: two.filter(owner)["Error"] == "")
    assert sorted(two.api.deleted) == ["uid-lent-0", "uid-lent-1"]
    eventually(scheduled(two, owner))


def test_hived_that_restarts_under_an_eviction_gives_the_owner_its_node(two: TwoNodes) -> None:
    lent = [two.pod(f"lent-{index}", "default", -1, 3, ("lent", 2)) for index in range(2)]
    for pod in lent:
        eventually(scheduled(two, pod))
    two.api.linger = True
    owner = two.pod("owner", "research", 100, 4)
    eventually(lambda: len(two.filter(owner)) > 0 and len(two.api.deleted) == 2)
    assert two.program is not None
    two.program.kill()
    for index in range(2):
        two.api.remove(f"default/lent-{index}")
    eventually(scheduled(two, owner))
    assert len(two.api.deleted) == 2


def test_configuration_that_ends_hived_is_taken_back(two: TwoNodes) -> None:
    bridge = two.bridge
    assert bridge is not None
    eventually(lambda: bridge.configuration.current)
    good = two.wanted.read_text()
    two.wanted.write_text(two.text(research=9))
    eventually(lambda: not two.answers())
    eventually(lambda: two.answers() and (two.folder / "used.yaml").read_text() == good)
    assert not bridge.configuration.current
    two.wanted.write_text(two.text(research=0))
    eventually(lambda: bridge.configuration.current)
    assert two.api.maps["pai-hived/hived-last-good"] == {"hivedscheduler.yaml": two.text(research=0)}
