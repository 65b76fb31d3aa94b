"""Nodes of the cluster against machines of the layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.health.cluster.identity import identity_findings, renamed
from pai_install.kube.labels import SKU
from pai_install.plan.observed import ClusterFacts, Membership, Observed
from pai_install.scheduling.model import SKU_LABEL
from pai_install.site import Site
from tests.ansible_path import module_util
from tests.hived_demo import demo_site
from tests.unit.health.cluster.conftest import LAYOUT

ADDRESSES = {"master": "10.0.0.1", "worker1": "10.0.0.2", "worker2": "10.0.0.3"}


def node(name: str, machine_id: str, address: str) -> dict[str, Any]:
    return {"name": name, "machine_id": machine_id, "address": address}


def observed(*nodes: dict[str, Any], **ids: str) -> dict[str, Observed]:
    """Three machines with machine ids "id-NAME" (or `ids`); the cluster has `nodes`, or all three."""
    listed = list(nodes) or [node(name, f"id-{name}", address) for name, address in ADDRESSES.items()]
    seen = {name: Observed(hostname=name, machine_id=ids.get(name, f"id-{name}")) for name in ADDRESSES}
    return {
        **seen,
        "master": seen["master"].model_copy(update={"cluster": ClusterFacts.model_validate({"nodes": listed})}),
    }


def member(seen: Observed, node_name: str) -> Observed:
    return seen.model_copy(update={"kubernetes": Membership(node=True, joined=True, node_name=node_name)})


def test_cluster_of_the_layouts_machines_has_no_findings(site: Site) -> None:
    assert identity_findings(site, observed()) == ()
    assert renamed(site, observed()) == {}


def test_node_that_the_layout_does_not_have_is_named(site: Site, snapshot: SnapshotAssertion) -> None:
    (found,) = identity_findings(site, observed(node("gpu9", "id-9", "10.0.0.9")))
    assert (found.verdict, found.subject, found.value) == ("WARN", "gpu9", "10.0.0.9")
    assert found.remedy == snapshot


def test_absent_machine_keeps_its_node(make_site: Any) -> None:
    site = make_site(layout=LAYOUT.replace("hostname: worker2,", "hostname: worker2, absent: true,"))
    seen = observed()
    del seen["worker2"]
    assert identity_findings(site, seen) == ()


def test_renamed_member_is_known_by_its_kubelets_certificate(site: Site) -> None:
    seen = observed(node("gpu-old", "id-worker1", "10.0.0.2"))
    seen["worker1"] = member(seen["worker1"], "gpu-old")
    assert renamed(site, seen) == {"worker1": "gpu-old"}
    (found,) = identity_findings(site, seen)
    assert found.subject == "gpu-old"
    assert "for this machine: worker1" in found.message


@pytest.mark.parametrize(
    ("machine_id", "address", "known"),
    [
        ("id-worker1", "10.0.0.2", "gpu-old"),
        ("id-worker1", "10.0.0.77", ""),  # a copy of its disk
        ("another", "10.0.0.2", ""),  # another machine took over the address
        ("", "10.0.0.2", ""),
    ],
)
def test_renamed_machine_that_was_reset_is_known_by_machine_id_and_address(
    site: Site, machine_id: str, address: str, known: str
) -> None:
    seen = observed(node("gpu-old", machine_id, address), node("master", "id-master", "10.0.0.1"))
    assert renamed(site, seen).get("worker1", "") == known


@pytest.mark.parametrize(("joined", "word"), [(False, "run pai-install apply"), (True, "restart kubelet")])
def test_machine_with_another_id_than_its_node_is_named(site: Site, joined: bool, word: str) -> None:
    seen = observed(worker1="fresh")
    if joined:
        seen["worker1"] = member(seen["worker1"], "worker1")
    (found,) = identity_findings(site, seen)
    assert (found.subject, found.value, found.expected) == ("worker1", "fresh", "id-worker1")
    assert word in found.remedy


def test_nothing_is_said_where_no_control_plane_reaches_the_api(site: Site) -> None:
    seen = observed(node("gpu9", "id-9", "10.0.0.9"))
    seen["master"] = seen["master"].model_copy(update={"cluster": ClusterFacts(error="refused")})
    assert identity_findings(site, seen) == ()


def test_a_worker_with_another_address_in_the_layout_is_the_same_machine(
    site: Site, snapshot: SnapshotAssertion
) -> None:
    moved = observed(
        *(node(name, f"id-{name}", "10.0.0.99" if name == "worker1" else it) for name, it in ADDRESSES.items())
    )
    (found,) = identity_findings(site, moved)
    assert (found.subject, found.value, found.expected) == ("worker1", "10.0.0.99", "10.0.0.2")
    assert found.message == snapshot
    assert "hostip: 10.0.0.99" in found.remedy


def test_a_renamed_machine_is_removed_and_added_on_purpose(site: Site) -> None:
    seen = observed(node("gpu-old", "id-worker1", "10.0.0.2"))
    seen["worker1"] = member(seen["worker1"], "gpu-old")
    (found,) = identity_findings(site, seen)
    assert "node remove gpu-old" in found.remedy
    assert "node add worker1" in found.remedy


def test_a_changed_machine_type_is_named_before_anything_is_done(site: Site) -> None:
    typed = observed(
        *(
            {**node(name, f"id-{name}", it), "sku": "h100" if name == "worker1" else ""}
            for name, it in ADDRESSES.items()
        )
    )
    (found,) = identity_findings(site, typed)
    assert (found.subject, found.value) == ("worker1", "h100")
    assert found.message.startswith("the machine type changes from h100 to ")
    assert "node replace worker1" in found.remedy


def test_names_of_a_block_of_hived_are_no_machine_types_of_the_layout(tmp_path: Path) -> None:
    site = demo_site(tmp_path)
    nodes = [{**node("w1", "id-w1", "10.0.0.2"), "sku": "K80"}]
    seen = {name: Observed(hostname=name, machine_id=f"id-{name}") for name in ("m1", "w1")}
    facts = ClusterFacts.model_validate({"nodes": nodes})
    assert identity_findings(site, {**seen, "m1": seen["m1"].model_copy(update={"cluster": facts})}) == ()


def test_the_label_is_that_of_the_schedulers() -> None:
    assert module_util("pai_cluster_state").SKU_LABEL == SKU == SKU_LABEL
