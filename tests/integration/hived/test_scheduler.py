"""HiveD, a current kube-scheduler and the bridge before a real API server. Nodes are objects, kubelets are played.

PAI_HIVED names HiveD's program.
"""

from __future__ import annotations

import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from pai_install.agents.common.http import Endpoint, HttpError
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.__main__ import Bridge
from pai_install.agents.hived_bridge.settings import parse
from pai_install.schedulers.compile import objects_of
from tests.hived_program import NEEDS_HIVED, PROGRAM
from tests.integration.hived.conftest import Api, Json, apply_addon, running
from tests.integration.hived.pods import SITE, pod
from tests.ports import free_ports
from tests.waiting import until

pytestmark = NEEDS_HIVED
NODES = SITE.supply["a100"].machines
RESOURCES = {"cpu": "8", "memory": "64Gi", "pods": "110"}
READY = {"type": "Ready", "status": "True", "reason": "played", "message": "played"}


class Kubelets:
    """Ends pods that are being deleted, as the kubelets of their nodes do."""

    def __init__(self, api: Api) -> None:
        self._api, self._over = api, threading.Event()
        self._thread = threading.Thread(target=self._play)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _play(self) -> None:
        while not self._over.wait(0.1):
            for entry in self._api.ask("GET", "/api/v1/pods")["items"]:
                if entry["metadata"].get("deletionTimestamp"):
                    remove(self._api, entry)


def remove(api: Api, entry: Json) -> None:
    place = f"/api/v1/namespaces/{entry['metadata']['namespace']}/pods/{entry['metadata']['name']}"
    try:
        api.ask("DELETE", f"{place}?gracePeriodSeconds=0")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise


@pytest.fixture(scope="module")
def prepared(api: Api) -> Api:
    """Nodes, and the add-on as it is applied."""
    apply_addon(api)
    for name in NODES:
        labels = {"kubernetes.io/hostname": name}
        api.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
        status = {"capacity": RESOURCES, "allocatable": RESOURCES, "conditions": [READY]}
        api.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, "application/merge-patch+json")
    return api


@pytest.fixture(scope="module")
def cluster_of_hived(prepared: Api, programs: dict[str, Path]) -> Iterator[Api]:
    """All of it runs, with the rights and configurations that a cluster gives it."""
    api, folder = prepared, prepared.folder
    hived, extender, opened, secure = free_ports(4)
    maps = {it["metadata"]["name"]: it["data"] for it in objects_of(SITE) if it["kind"] == "ConfigMap"}
    kubeconfig = api.kubeconfig("hived", "hived-token")
    text = maps["hivedscheduler"]["hivedscheduler.yaml"].replace("127.0.0.1:9096", f"127.0.0.1:{hived}")
    (folder / "wanted.yaml").write_text(f"{text}kubeConfigFilePath: {kubeconfig}\n")
    configuration = yaml.safe_load(maps["kube-scheduler"]["config.yaml"])
    configuration["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    configuration["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{extender}/v1/extender"
    (folder / "scheduler.yaml").write_text(yaml.safe_dump(configuration))
    (folder / "token").write_text("hived-token")
    words = [
        f"--hived-port={hived}",
        f"--extender-port={extender}",
        f"--open-port={opened}",
        "--record=hived-last-good",
    ]
    words += [f"--wanted={folder}/wanted.yaml", f"--used={folder}/used.yaml", "--namespace=pai-hived"]
    words += [
        "--api-host=127.0.0.1",
        f"--api-port={api.port}",
        f"--token={folder}/token",
        f"--authority={api.authority}",
    ]
    scheduler: list[str | Path] = [
        programs["kube-scheduler"],
        f"--config={folder}/scheduler.yaml",
        f"--secure-port={secure}",
        "--bind-address=127.0.0.1",
    ]
    with ExitStack() as stack:
        bridge = Bridge(parse(words), Log())
        bridge.start()
        stack.callback(bridge.stop)
        stack.enter_context(running(["env", f"CONFIG={folder}/used.yaml", PROGRAM], folder / "hived.log"))
        until(lambda: answers(hived))
        stack.enter_context(
            running(
                [*scheduler, *(f"--{it}-kubeconfig={kubeconfig}" for it in ("authentication", "authorization"))],
                folder / "scheduler.log",
            )
        )
        stack.enter_context(Kubelets(api))
        until(lambda: bridge.configuration.current)
        yield api


def answers(port: int) -> bool:
    try:
        return Endpoint("127.0.0.1", port, 1).call("GET", "/").status == 200
    except HttpError:
        return False


@pytest.fixture
def empty(cluster_of_hived: Api) -> Iterator[Api]:
    """No pods before and after."""
    yield cluster_of_hived
    for entry in cluster_of_hived.ask("GET", "/api/v1/pods")["items"]:
        remove(cluster_of_hived, entry)
    until(lambda: not placed(cluster_of_hived))


def placed(api: Api) -> dict[str, str]:
    """Pod -> its node, empty where it waits."""
    return {it["metadata"]["name"]: it["spec"].get("nodeName", "") for it in api.ask("GET", "/api/v1/pods")["items"]}


def make(api: Api, *entries: Json) -> list[str]:
    for entry in entries:
        assert api.create(entry) == ""
    return [entry["metadata"]["name"] for entry in entries]


def all_placed(api: Api, names: list[str]) -> Callable[[], bool]:
    return lambda: all(placed(api).get(name) for name in names)


def test_gang_is_placed_with_devices_of_its_own(empty: Api) -> None:
    names = make(empty, *(pod(f"gang-{it}", "research", 10, 2, ("gang", 2)) for it in range(2)))
    until(all_placed(empty, names))
    notes = [it["metadata"]["annotations"] for it in empty.ask("GET", "/api/v1/pods")["items"]]
    devices = {it["hivedscheduler.microsoft.com/pod-leaf-cell-isolation"] for it in notes}
    assert devices == {"0,1", "2,3"}


def test_gang_that_does_not_fit_is_not_placed_in_part(empty: Api) -> None:
    names = make(empty, *(pod(f"large-{it}", "research", 10, 2, ("large", 3)) for it in range(3)))
    time.sleep(5)
    assert {placed(empty)[name] for name in names} == {""}


def test_owner_gets_its_node_back_where_idle_devices_are_spread(empty: Api) -> None:
    """The case in which nothing else evicts: every pod of the owner fits on some node in all that Kubernetes counts."""
    lent = [pod("lent-0", "product", -1, 1), pod("lent-1", "product", -1, 2)]
    for entry, node in zip(lent, NODES, strict=True):
        entry["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    until(all_placed(empty, make(empty, *lent)))
    assert set(placed(empty).values()) == set(NODES)
    owners = make(empty, *(pod(f"owner-{it}", "research", 100, 2, ("owner", 2)) for it in range(2)))
    until(all_placed(empty, owners), 30)
    assert len({placed(empty)[name] for name in owners}) == 1
    assert len(placed(empty).keys() & {"lent-0", "lent-1"}) == 1


def test_lent_gang_goes_whole_when_the_owner_comes(empty: Api) -> None:
    lent = make(empty, *(pod(f"lent-{it}", "product", -1, 3, ("lent", 2)) for it in range(2)))
    until(all_placed(empty, lent))
    owner = make(empty, pod("owner", "research", 100, 4))
    until(all_placed(empty, owner), 30)
    until(lambda: not placed(empty).keys() & set(lent), 10)


def test_higher_priority_of_the_same_team_goes_first(empty: Api) -> None:
    first = make(empty, pod("first", "research", 10, 4))
    until(all_placed(empty, first))
    urgent = make(empty, pod("urgent", "research", 120, 4))
    until(all_placed(empty, urgent), 30)
    assert "first" not in placed(empty)


def test_gang_waits_for_cores_on_the_machine_of_its_devices(empty: Api) -> None:
    """HiveD counts no cores. It put both pods on one machine, which has enough for either of them alone."""
    pair = [pod(f"cores-{it}", "research", 10, 1, ("cores", 2)) for it in range(2)]
    for entry in pair:
        entry["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "5"}
    names = make(empty, *pair)
    until(lambda: sum(map(bool, placed(empty).values())) == 1)
    (waits,) = (name for name, node in placed(empty).items() if not node)
    (node,) = filter(None, placed(empty).values())
    until(lambda: f"devices on {node}" in unplaced(empty, waits))
    time.sleep(5)
    assert placed(empty)[waits] == ""
    offers(empty, node, "10")
    try:
        until(all_placed(empty, names))
        assert set(placed(empty).values()) == {node}
    finally:
        offers(empty, node, RESOURCES["cpu"])


def unplaced(api: Api, name: str) -> str:
    """Why a pod has no node."""
    found = api.ask("GET", f"/api/v1/namespaces/research/pods/{name}")["status"].get("conditions", [])
    return " ".join(it.get("message", "") for it in found if it["type"] == "PodScheduled")


def offers(api: Api, node: str, cores: str) -> None:
    status = {"capacity": {"cpu": cores}, "allocatable": {"cpu": cores}}
    api.ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": status}, "application/merge-patch+json")


def test_guarantee_of_another_team_is_not_taken(empty: Api) -> None:
    make(empty, *(pod(f"most-{it}", "research", 100, 4) for it in range(2)))
    until(lambda: sum(map(bool, placed(empty).values())) == 1)
    time.sleep(3)
    owner = make(empty, pod("owner", "product", 10, 4))
    until(all_placed(empty, owner))
    assert sum(bool(node) for name, node in placed(empty).items() if name.startswith("most")) == 1
