"""containerd's network of pods: for this node's addresses, whatever else lies on the machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.ansible_path import module_util

from .conftest import ModuleFailedError, Run

TEMPLATE = {"plugins": [{"type": "bridge", "ipam": {"ranges": [[{"subnet": "POD_CIDR"}]]}}]}


class Api:
    """What the API server says of the node: a range, or a problem; and how often it was asked."""

    def __init__(self) -> None:
        self.answers: list[Any] = [{"spec": {"podCIDR": "10.200.3.0/24"}}]
        self.asked = 0

    def get(self, *_words: str, **_more: Any) -> Any:
        """The next answer; the last one again and again."""
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Api:
    """The module on a node whose files lie below tmp_path."""
    made, shared = Api(), module_util("pai_pod_network")
    for name, path in (
        ("TEMPLATE", "pod-network.json"),
        ("CONFIGURATION", "cni/10-pods.conflist"),
        ("KUBELET_CONF", "kubelet.conf"),
    ):
        monkeypatch.setattr(shared, name, str(tmp_path / path))
    monkeypatch.setattr(shared, "Kubectl", lambda _conf: made)
    monkeypatch.setattr(shared, "INTERVAL_S", 0)
    (tmp_path / "pod-network.json").write_text(json.dumps(TEMPLATE))
    (tmp_path / "kubelet.conf").touch()
    return made


def cidr_in(path: Path) -> str:
    """The range in a configuration; empty without one."""
    return json.loads(path.read_text())["plugins"][0]["ipam"]["ranges"][0][0]["subnet"] if path.exists() else ""


def test_nodes_addresses_are_filled_in_and_recorded(api: Api, run_module: Run, tmp_path: Path) -> None:
    said = run_module("pai_pod_network", ask=True)
    assert said["changed"]
    assert cidr_in(tmp_path / "cni" / "10-pods.conflist") == "10.200.3.0/24"
    assert [item["path"] for item in said["managed"]] == [str(tmp_path / "cni" / "10-pods.conflist")]
    assert not run_module("pai_pod_network", ask=True)["changed"]
    assert [path.name for path in (tmp_path / "cni").iterdir()] == ["10-pods.conflist"]


def test_containerd_notices_the_file(
    api: Api, run_module: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """containerd 2.3 ignores what is created in its folder or moved there; it loads when one there is renamed."""
    replace, moved = os.replace, []

    def noted(old: str, new: str) -> None:
        moved.extend([old, new])
        replace(old, new)

    monkeypatch.setattr(os, "replace", noted)
    run_module("pai_pod_network", ask=True)
    old, new = moved
    assert Path(old).parent == Path(new).parent == tmp_path / "cni"
    assert Path(old).suffix not in (".conf", ".conflist", ".json")


def test_known_addresses_are_not_asked_for_again(api: Api, run_module: Run, tmp_path: Path) -> None:
    """The API may be down while a runtime is repaired."""
    run_module("pai_pod_network")
    (tmp_path / "pod-network.json").write_text(json.dumps({**TEMPLATE, "mtu": 8950}))
    assert run_module("pai_pod_network")["changed"]
    assert api.asked == 1


def test_addresses_of_an_earlier_membership_are_replaced_after_a_join(
    api: Api, run_module: Run, tmp_path: Path
) -> None:
    run_module("pai_pod_network", ask=True)
    api.answers = [{"spec": {"podCIDR": "10.200.9.0/24"}}]
    run_module("pai_pod_network", ask=True)
    assert cidr_in(tmp_path / "cni" / "10-pods.conflist") == "10.200.9.0/24"


def test_a_new_node_gets_its_range_after_a_while(api: Api, run_module: Run) -> None:
    error = module_util("pai_kubectl").KubectlError("not found")
    api.answers = [error, {"spec": {}}, {"spec": {"podCIDR": "10.200.3.0/24"}}]
    assert run_module("pai_pod_network", ask=True)["changed"]


def test_node_without_a_range_is_named(api: Api, run_module: Run) -> None:
    api.answers = [{"spec": {}}]
    with pytest.raises(ModuleFailedError, match="has no range of addresses for pods yet"):
        run_module("pai_pod_network", ask=True, timeout=0)


def test_check_mode_writes_nothing(api: Api, run_module: Run, tmp_path: Path) -> None:
    assert run_module("pai_pod_network", ask=True, check=True)["changed"]
    assert not (tmp_path / "cni").exists()


def test_machine_that_is_no_node_is_left_alone(api: Api, run_module: Run, tmp_path: Path) -> None:
    (tmp_path / "kubelet.conf").unlink()
    assert run_module("pai_pod_network") == {**run_module("pai_pod_network"), "changed": False, "managed": []}
    assert api.asked == 0


def test_reset_forgets_the_range(api: Api, run_module: Run, tmp_path: Path) -> None:
    del api
    run_module("pai_pod_network", ask=True)
    shared = module_util("pai_pod_network")
    shared.forget()
    shared.forget()
    assert not (tmp_path / "cni" / "10-pods.conflist").exists()
