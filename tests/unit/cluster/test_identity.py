"""Which machine is which node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.cluster.identity import Identity, IdentityKind, identities
from pai_install.plan.observed import Observed
from pai_install.site import Site

IDS = {"master": "a0", "worker1": "b0", "worker2": "c0"}
ADDRESSES = {"master": "10.0.0.1", "worker1": "10.0.0.2", "worker2": "10.0.0.3"}


def node(name: str, **words: Any) -> dict[str, Any]:
    """The node of a machine, changed by `words`."""
    return {"name": name, "machine_id": IDS.get(name, ""), "address": ADDRESSES.get(name, ""), **words}


def look(*nodes: dict[str, Any], error: str = "", **ids: str) -> dict[str, Observed]:
    """All machines with their ids, and the nodes that the control plane sees."""
    found = {name: Observed(hostname=name, machine_id=ids.get(name, own)) for name, own in IDS.items()}
    cluster = {"error": error, "nodes": list(nodes), "pods": []}
    found["master"] = found["master"].model_copy(update={"cluster": cluster})
    return found


ALL = tuple(node(name) for name in IDS)


def test_nodes_of_their_machines_are_nothing_to_tell(site: Site) -> None:
    assert identities(site, look(*ALL)) == ()
    assert identities(site, look(*ALL[:2])) == (), "a machine that has not joined is no matter of identity"


def test_a_stranger_is_named(site: Site) -> None:
    (found,) = identities(site, look(*ALL, node("stranger", machine_id="f0", address="10.0.0.9")))
    assert found == Identity(IdentityKind.UNKNOWN, "", "stranger")
    assert (found.finding.subject, found.finding.verdict) == ("stranger", Verdict.WARN)
    assert "kubectl delete node stranger" in found.finding.remedy


def test_an_absent_machine_is_no_stranger(make_site: Callable[..., Site]) -> None:
    site = make_site(
        """
machine-sku: {cpu: {mem: 8Gi, cpu: {vcore: 4}}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true", pai-worker: "true"}
  - {hostname: worker1, hostip: 10.0.0.2, machine-type: cpu, pai-worker: "true", absent: true}
"""
    )
    observed = {"master": look(*ALL[:2])["master"]}
    assert identities(site, observed) == ()


@pytest.mark.parametrize(
    ("words", "seen"), [({"machine_id": "c0", "address": "10.0.0.77"}, "c0"), ({"address": "10.0.0.3"}, "10.0.0.3")]
)
def test_a_renamed_machine_is_told_by_its_id_or_its_address(site: Site, words: dict[str, str], seen: str) -> None:
    (found,) = identities(site, look(*ALL[:2], node("old-name", **words)))
    assert (found.kind, found.machine, found.node, found.seen) == (IdentityKind.RENAMED, "worker2", "old-name", seen)
    assert found.finding.verdict is Verdict.FAIL
    assert "old-name" in found.finding.message


def test_a_machine_that_was_not_observed_is_told_by_its_address_alone(site: Site) -> None:
    observed = look(*ALL[:2], node("old-name", machine_id="zz", address="10.0.0.3"))
    del observed["worker2"]
    assert [found.kind for found in identities(site, observed)] == [IdentityKind.RENAMED]


def test_another_machine_id_is_another_installation(site: Site) -> None:
    (found,) = identities(site, look(*ALL, worker1="b9"))
    assert found == Identity(IdentityKind.REINSTALLED, "worker1", "worker1", "b9", "b0")
    assert (found.finding.value, found.finding.expected) == ("b9", "b0")


@pytest.mark.parametrize(("ids", "words"), [({"worker1": ""}, {}), ({}, {"machine_id": ""})])
def test_without_both_ids_nothing_is_claimed(site: Site, ids: dict[str, str], words: dict[str, str]) -> None:
    nodes = (ALL[0], node("worker1", **words), ALL[2])
    assert identities(site, look(*nodes, **ids)) == ()


def test_an_api_that_does_not_answer_makes_nobody_a_stranger(site: Site) -> None:
    assert identities(site, look(error="refused")) == ()
    assert identities(site, {}) == ()
