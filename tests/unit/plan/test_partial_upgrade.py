"""A cluster in the middle of an upgrade is told from one that drifted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.plan.observed import Membership, Observed
from pai_install.plan.partial_upgrade import upgrade_findings
from pai_install.site import Site

NAMES = ("master", "worker1", "worker2")
VERSIONS = ("1.35.4", "1.36.3")


def machine(name: str, kubelet: str, *, pods: str = "", node: bool = True, **programs: str) -> Observed:
    settings = {"version": pods} if pods else {}
    kubernetes = Membership(node=node, joined=node, control_plane=bool(pods), settings=settings)
    return Observed(hostname=name, programs={"kubelet": kubelet, **programs}, kubernetes=kubernetes)


def seen(*machines: Observed) -> dict[str, Observed]:
    return {it.hostname: it for it in machines}


def test_what_is_left_is_named_with_the_command(site: Site, snapshot: SnapshotAssertion) -> None:
    (found,) = upgrade_findings(
        site,
        seen(
            machine("master", "1.36.3", pods="1.36.3"),
            machine("worker1", "1.36.3", containerd="2.3.7"),
            machine("worker2", "1.35.4", containerd="2.3.6"),
        ),
    )
    assert (found.id, found.verdict, found.subject) == ("upgrade-left", "WARN", "cluster")
    assert found.message == snapshot
    assert found.remedy == snapshot


def test_a_control_plane_between_its_pods_and_its_kubelet_is_left(site: Site, snapshot: SnapshotAssertion) -> None:
    old = [machine(name, "1.35.4") for name in NAMES[1:]]
    (found,) = upgrade_findings(site, seen(machine("master", "1.35.4", pods="1.36.3"), *old))
    assert found.message == snapshot


def test_another_runtime_alone_asks_for_no_version_of_kubernetes(site: Site) -> None:
    (found,) = upgrade_findings(
        site,
        seen(
            machine("master", "1.36.3", pods="1.36.3", containerd="2.3.7"),
            machine("worker1", "1.36.3", containerd="2.3.6"),
        ),
    )
    assert found.remedy == "pai-install upgrade"


def test_machines_outside_of_the_cluster_do_not_count(site: Site) -> None:
    machines = (machine("master", "1.36.3", pods="1.36.3"), machine("worker1", "1.35.4", node=False))
    assert upgrade_findings(site, seen(*machines)) == ()
    assert upgrade_findings(site, {}) == ()


@given(kubelets=st.tuples(*[st.sampled_from(VERSIONS)] * 3))
def test_there_is_something_left_exactly_while_versions_differ(site: Site, kubelets: tuple[str, ...]) -> None:
    machines = seen(*(machine(name, version) for name, version in zip(NAMES, kubelets, strict=True)))
    found = upgrade_findings(site, machines)
    assert bool(found) == (len(set(kubelets)) > 1)
    for finding in found:
        assert all((f"{name}: " in finding.value) == (machines[name].programs["kubelet"] == "1.35.4") for name in NAMES)
