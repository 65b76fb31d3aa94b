"""What is written of pods and nodes, and when."""

from __future__ import annotations

from pai_install.agents.common.api import ApiError
from pai_install.agents.group_network.addresses import Directory
from pai_install.agents.group_network.publisher import MAPS, NODES, PODS, Publisher

from .objects import Object, node, pod

SETS = {"group.vision", "others", "machines", "control-planes", "web"}


class Written:
    """An API server that takes maps."""

    def __init__(self, *maps: Object) -> None:
        self.maps = {item["metadata"]["name"]: item for item in maps}
        self.puts = 0
        self.refuses = False
        self.refused = ""

    def pages(self, path: str, query: object) -> list[Object]:
        assert (path, query) == (MAPS, {})
        return [{"items": list(self.maps.values())}]

    def put(self, path: str, name: str, item: Object) -> None:
        assert path == MAPS
        if self.refuses or name == self.refused:
            raise ApiError("no", 500)
        self.puts += 1
        self.maps[name] = item

    def delete(self, path: str) -> bool:
        del self.maps[path.rpartition("/")[2]]
        return True

    def said(self) -> dict[str, str]:
        return {name: item["data"]["addresses"] for name, item in self.maps.items() if "addresses" in item["data"]}


def publishing(*maps: Object) -> tuple[Publisher, Written, list[str]]:
    server, said = Written(*maps), list[str]()
    return Publisher(server, Directory(("vision",)), said.append), server, said  # type: ignore[arg-type]


def step(publisher: Publisher, kind: str, *items: Object) -> None:
    publisher.events.put(lambda: publisher.take_list(kind, items))
    publisher.step(0)


def test_nothing_is_published_before_pods_and_nodes_are_known() -> None:
    publisher, server, _ = publishing()
    step(publisher, PODS, pod("a", "vision", "10.200.1.5"))
    assert server.said() == {}
    step(publisher, NODES, node())
    assert server.said()["group.vision"] == "10.200.1.5"


def test_only_changes_are_written() -> None:
    publisher, server, _ = publishing()
    step(publisher, PODS, pod("a", "vision", "10.200.1.5"))
    step(publisher, NODES, node())
    puts = server.puts
    publisher.step(0)
    assert server.puts == puts
    publisher.events.put(lambda: publisher.take(PODS, pod("a", "vision", "10.200.1.5"), deleted=True))
    publisher.step(0)
    assert (server.puts, server.said()["group.vision"]) == (puts + 1, "")


def test_former_groups_go_and_foreign_maps_stay() -> None:
    former = {"metadata": {"name": "group.gone"}, "data": {"addresses": "10.200.1.9"}}
    foreign = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "x"}}
    publisher, server, _ = publishing(former, foreign)
    publisher.recall()
    step(publisher, PODS)
    step(publisher, NODES, node())
    assert set(server.maps) == {*SETS, "kube-root-ca.crt"}


def test_a_write_that_was_refused_is_tried_again() -> None:
    publisher, server, said = publishing()
    server.refuses = True
    step(publisher, PODS)
    step(publisher, NODES, node())
    assert len(said) == 1, "without the web pages it writes nothing"
    server.refuses = False
    publisher.step(0)
    assert set(server.said()) == SETS


def test_a_group_learns_of_no_page_before_its_port_is_closed() -> None:
    publisher, server, _ = publishing()
    step(publisher, NODES, node())
    step(publisher, PODS)
    page = pod("a", "vision", "10.200.1.5")
    page["metadata"]["labels"] = {"pai-install/web-port": "8888"}
    server.refused = "web"
    step(publisher, PODS, page)
    assert server.said()["group.vision"] == ""
    server.refused = ""
    publisher.step(0)
    assert (server.said()["web"], server.said()["group.vision"]) == ("10.200.1.5:8888", "10.200.1.5")


def test_a_bad_object_affects_no_other() -> None:
    publisher, server, _ = publishing()
    step(publisher, PODS, {"metadata": [], "spec": 3}, pod("a", "vision", "10.200.1.5"), {"status": {"podIP": [[]]}})
    step(publisher, NODES, {"metadata": {"name": {}}}, node())
    assert server.said()["group.vision"] == "10.200.1.5"
