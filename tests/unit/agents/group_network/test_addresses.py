"""Which addresses belong to which group."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pai_install.agents.group_network.addresses import (
    CONTROL_PLANES,
    MACHINES,
    OTHERS,
    WEB,
    Directory,
    read_addresses,
    read_pages,
)

from .objects import Object, node, pod

# flannel and the bridge of a node
OVERLAY = "10.200.1.0 10.200.1.1"


def published(*pods: Object, nodes: tuple[Object, ...] = (node(),)) -> dict[str, str]:
    directory = Directory(("vision", "speech"))
    for item in pods:
        directory.see_pod(item)
    for item in nodes:
        directory.see_machine(item)
    return dict(directory.published())


def test_every_pod_is_in_the_set_of_its_group_or_of_the_others() -> None:
    assert published(
        pod("a", "vision", "10.200.1.5"), pod("b", "speech", "10.200.1.6"), pod("c", "kube-system", "10.200.1.7")
    ) == {
        "group.vision": "10.200.1.5",
        "group.speech": "10.200.1.6",
        OTHERS: f"{OVERLAY} 10.200.1.7",
        MACHINES: "172.30.0.1",
        CONTROL_PLANES: "",
        WEB: "",
    }


def ended(it: Object) -> None:
    it["status"]["phase"] = "Succeeded"


def on_host(it: Object) -> None:
    it["spec"]["hostNetwork"] = True


def foreign(it: Object) -> None:
    it["status"]["podIP"] = "10.200.9.5"


def of_the_bridge(it: Object) -> None:
    it["status"]["podIP"] = "10.200.1.1"


def outside(it: Object) -> None:
    it["status"]["podIP"] = "8.8.8.8"


def no_address(it: Object) -> None:
    it["status"]["podIP"] = {"a": []}


def no_node(it: Object) -> None:
    it["spec"]["nodeName"] = ["n1"]


def no_status(it: Object) -> None:
    it["status"] = "Running"


@pytest.mark.parametrize("damage", [ended, on_host, foreign, of_the_bridge, outside, no_address, no_node, no_status])
def test_an_address_that_is_not_the_pods_counts_nowhere(damage: Callable[[Object], None]) -> None:
    """Root of a worker writes the status of its pods: it does not open another group with it."""
    bad = pod("a", "vision", "10.200.1.5")
    damage(bad)
    bad["metadata"]["labels"] = {"pai-install/web-port": "8888"}
    assert published(bad) == {
        "group.vision": "",
        "group.speech": "",
        OTHERS: OVERLAY,
        MACHINES: "172.30.0.1",
        CONTROL_PLANES: "",
        WEB: "",
    }


def test_the_newest_pod_has_the_address() -> None:
    old, new = pod("old", "vision", "10.200.1.5"), pod("new", "speech", "10.200.1.5", since="2026-01-02T00:00:00Z")
    for order in ((old, new), (new, old)):
        found = published(*order)
        assert (found["group.vision"], found["group.speech"]) == ("", "10.200.1.5")


@pytest.mark.parametrize("network", ["", "10.200.1.0/32", "fd00::/64", "x", None, 7])
def test_a_node_without_a_network_has_no_pods(network: object) -> None:
    strange = node()
    strange["spec"]["podCIDR"] = network
    assert published(pod("a", "vision", "10.200.1.5"), nodes=(strange,))["group.vision"] == ""


def test_words_that_are_no_address_are_left_out() -> None:
    assert [str(one) for one in read_addresses("10.0.0.1 x 10.0.0.2; 10.0.0.3")] == ["10.0.0.1", "10.0.0.3"]


def test_the_port_of_a_web_page_is_published_first() -> None:
    """A pod that is in its group's set and not among the pages would be reached by its group."""
    page = pod("a", "vision", "10.200.1.5")
    page["metadata"]["labels"] = {"pai-install/web-port": "8888"}
    found = published(page, pod("b", "vision", "10.200.1.6"))
    assert next(iter(found)) == WEB
    assert (found[WEB], found["group.vision"]) == ("10.200.1.5:8888", "10.200.1.5 10.200.1.6")
    assert [(str(address), port) for address, port in read_pages(found[WEB])] == [("10.200.1.5", 8888)]


def test_the_port_of_an_ssh_server_is_closed_as_that_of_a_web_page() -> None:
    both = pod("a", "vision", "10.200.1.5")
    both["metadata"]["labels"] = {"pai-install/web-port": "8888", "pai-install/ssh-port": "2222"}
    same = pod("b", "vision", "10.200.1.6")
    same["metadata"]["labels"] = {"pai-install/web-port": "22", "pai-install/ssh-port": "22"}
    assert published(both, same)[WEB] == "10.200.1.5:2222 10.200.1.5:8888 10.200.1.6:22"


@pytest.mark.parametrize("port", ["", "0", "65536", "080", "8888 ", "x", "-1", "٣", None, 8888, ["8888"]])
def test_a_port_that_is_none_is_no_page(port: object) -> None:
    page = pod("a", "vision", "10.200.1.5")
    page["metadata"]["labels"] = {"pai-install/web-port": port, "pai-install/ssh-port": port}
    assert published(page)[WEB] == ""


def test_words_that_are_no_page_are_left_out() -> None:
    assert read_pages("10.0.0.1 10.0.0.2:x x:80 10.0.0.3:0 :80 10.0.0.4:1;") == ()


def test_control_planes_come_from_all_of_their_addresses() -> None:
    leader = node("m", "10.200.2.0/25", "172.30.0.9")
    leader["metadata"]["labels"] = {"node-role.kubernetes.io/control-plane": ""}
    assert published(nodes=(leader, node()))[CONTROL_PLANES] == "10.200.2.0 10.200.2.1 172.30.0.9"
