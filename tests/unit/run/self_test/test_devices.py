"""What nodes are given for the test, and what is taken from them."""

from __future__ import annotations

from pai_install.kube.model import Node
from pai_install.run.self_test.devices import given, taken
from pai_install.schedulers.self_test.manifests import scenarios
from pai_install.schedulers.self_test.scenarios import Bounds


def test_machines_share_what_each_scenario_needs() -> None:
    first, second = given(("w1", "w2"), scenarios("kueue", Bounds()))
    assert (first.ref.name, first.part, second.ref.name) == ("w1", "status", "w2")
    body = first.body
    assert isinstance(body, dict)
    assert body["status"]["capacity"] == body["status"]["allocatable"]
    assert body["status"]["capacity"]["pai-install/self-test-gang"] == "2"
    assert body["status"]["capacity"]["pai-install/self-test-oversize"] == "1"
    assert not [name for name in body["status"]["capacity"] if not name.startswith("pai-install/self-test-")]
    (alone,) = given(("w1",), scenarios("kueue", Bounds()))
    assert isinstance(alone.body, dict)
    assert alone.body["status"]["capacity"]["pai-install/self-test-gang"] == "4"


def test_only_what_the_test_gave_is_taken_and_only_where_it_is() -> None:
    node = Node("w1", capacity={"cpu": 8.0, "pai-install/self-test-old": 2.0, "nvidia.com/gpu": 8.0})
    (patch,) = taken([node, Node("w2", capacity={"cpu": 8.0})])
    gone = {"pai-install/self-test-old": None}
    assert (patch.ref.name, patch.part) == ("w1", "status")
    assert patch.body == {"status": {"capacity": gone, "allocatable": gone}}
