"""upgrade: order, batches, what is refused, and that the same command continues one that was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.components.model import ComponentSet
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.labels import CORDONED_BY_UPGRADE
from pai_install.operations.upgrade import Upgrade
from pai_install.operations.upgrade_rules import removed_by, require_kubernetes, require_target
from pai_install.parts.context import Context
from pai_install.parts.registry import make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import ClusterCalls, Inventory, LocalWork, Plan, Playbook
from pai_install.plan.observation import ApiUse, Observation
from pai_install.plan.observed import Observed
from pai_install.site import Site
from tests.errors import raises
from tests.unit.cluster.test_drain import pod
from tests.unit.operations.test_nodes import node
from tests.unit.plan.conftest import CONFIG, ROLES, converged

NODES = ("master", "worker1", "worker2")
KUBE_SYSTEM = {"kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u-1"}}


@pytest.fixture
def newer(site: Site, components: ComponentSet) -> Inventory:
    """The same site with Kubernetes 1.36.3 where 1.35.4 runs: other programs, other images."""
    files = tuple(
        replace(file, version="1.36.3", sha256="f" * 64) if file.name in ("kubelet", "kubeadm", "kubectl") else file
        for file in components.files
    )
    return build_inventory(
        make_context(site, replace(components, files=files), site.directory / ".pai"), dict.fromkeys(ROLES, "1")
    )


def seen_at(inventory: Inventory, version: str, *names: str) -> dict[str, Observed]:
    """The machines as this inventory makes them, with that version of Kubernetes."""
    found = converged(inventory)
    return {name: _at(found[name], version) for name in names or NODES}


def _at(seen: Observed, version: str) -> Observed:
    settings = {"version": version} if seen.hostname == "master" else {}
    membership = seen.kubernetes.model_copy(
        update={"joined": True, "control_plane": bool(settings), "settings": settings}
    )
    return seen.model_copy(update={"kubernetes": membership, "programs": {"kubelet": version}})


def observation(inventory: Inventory, machines: dict[str, Observed], **words: Any) -> Observation:
    answers = words.pop("answers", (tuple(node(name) for name in NODES), ()))
    return Observation(inventory, machines, answers=(*answers, (KUBE_SYSTEM,)), **words)


def names(plan: Plan) -> list[str]:
    return [step.name for step in plan.steps]


def test_control_planes_then_workers_one_by_one(site: Site, inventory: Inventory, newer: Inventory) -> None:
    plan = Upgrade().plan(site, observation(newer, seen_at(inventory, "1.35.4")))
    assert names(plan) == [
        "components",
        "backup",
        "pack",
        "control-plane-1",
        "control-plane-1-drain",
        "control-plane-1-runtime",
        "control-plane-1-back",
        "workers-1-drain",
        "workers-1-runtime",
        "workers-1-settings",
        "workers-1-ready",
        "workers-1-health",
        "workers-1-back",
        "workers-2-drain",
        "workers-2-runtime",
        "workers-2-settings",
        "workers-2-back",
        "verify",
        "health",
    ]
    by_name = {step.name: step for step in plan.steps}
    assert by_name["workers-1-drain"].names == ("worker1",)
    assert by_name["workers-2-drain"].after_all == (
        "workers-1-drain", "workers-1-runtime", "workers-1-settings", "workers-1-ready", "workers-1-health",
        "workers-1-back",
    )  # fmt: skip
    assert by_name["verify"].after_all, "what was stopped is not proven"
    assert "kubernetes 1.35.4 -> 1.36.3" in by_name["workers-1-runtime"].hosts[0].reasons
    assert "restarts kubelet.service" not in by_name["control-plane-1"].hosts[0].effects


def test_a_wide_batch_takes_several_and_the_cordon_carries_a_mark(
    site: Site, inventory: Inventory, newer: Inventory
) -> None:
    plan = Upgrade(max_unavailable="100%").plan(site, observation(newer, seen_at(inventory, "1.35.4")))
    drain = next(step for step in plan.steps if step.name == "workers-1-drain")
    assert drain.names == ("worker1", "worker2")
    assert "workers-2-drain" not in names(plan)
    assert isinstance(drain.action, ClusterCalls)
    marks = [call.arguments["body"]["metadata"]["labels"] for call in drain.action.calls if call.verb == "patch"]
    assert marks == [{CORDONED_BY_UPGRADE: "true"}] * 2


def test_gpus_are_asked_for_their_health_before_the_node_gets_jobs(
    site: Site, inventory: Inventory, newer: Inventory
) -> None:
    """The gate of a reboot; a machine of the batch without GPUs does not wait for it."""
    plan = Upgrade(max_unavailable="2").plan(site, observation(newer, seen_at(inventory, "1.35.4")))
    steps = {step.name: step for step in plan.steps}
    order = names(plan)
    assert order.index("workers-1-ready") < order.index("workers-1-health") < order.index("workers-1-back")
    assert (steps["workers-1-health"].action, steps["workers-1-health"].names) == (
        LocalWork("health-gate"), ("worker1",),
    )  # fmt: skip
    assert steps["workers-1-ready"].names == ("worker1",)
    assert steps["workers-1-back"].names == ("worker1", "worker2")
    assert not any(name.startswith("control-plane") and name.endswith("-health") for name in order)


def test_what_is_upgraded_is_nothing_to_do(site: Site, newer: Inventory, snapshot: SnapshotAssertion) -> None:
    plan = Upgrade().plan(site, observation(newer, seen_at(newer, "1.36.3")))
    assert plan.empty
    assert plan.nothing == snapshot


def test_one_that_was_cut_off_goes_on_where_it_was(site: Site, inventory: Inventory, newer: Inventory) -> None:
    """The control plane and worker1 are done, but worker1 was not put back into service."""
    machines = {**seen_at(inventory, "1.35.4", "worker2"), **seen_at(newer, "1.36.3", "master", "worker1")}
    marked = node("worker1", cordoned=True, labels={CORDONED_BY_UPGRADE: "true"})
    plan = Upgrade().plan(site, observation(newer, machines, answers=((node("master"), marked, node("worker2")), ())))
    again = ["workers-1-settings", "workers-1-ready", "workers-1-health", "workers-1-back"]
    assert names(plan)[:5] == [*again, "workers-2-drain"]
    back = plan.steps[3].action
    assert isinstance(back, ClusterCalls)
    assert [call.verb for call in back.calls] == ["await-node", "patch"]


def test_node_that_a_person_took_out_stays_out(site: Site, inventory: Inventory, newer: Inventory) -> None:
    answers = ((node("master"), node("worker1", cordoned=True), node("worker2")), ())
    plan = Upgrade().plan(site, observation(newer, seen_at(inventory, "1.35.4"), answers=answers))
    steps = {step.name: step for step in plan.steps}
    for name in ("workers-1-drain", "workers-1-back"):
        action = steps[name].action
        assert isinstance(action, ClusterCalls)
        assert "patch" not in [call.verb for call in action.calls], name


def test_the_kubelet_is_never_newer_than_the_api_server(site: Site, inventory: Inventory, newer: Inventory) -> None:
    plan = Upgrade().plan(site, observation(newer, seen_at(inventory, "1.35.4")))
    order = [step.action.playbook for step in plan.steps if isinstance(step.action, Playbook)]
    assert order.index("control-plane.yml") < order.index("runtime.yml")


def test_images_that_kubeadm_asks_for_are_there_before(
    site: Site, components: ComponentSet, inventory: Inventory
) -> None:
    images = tuple(
        replace(image, tag="3.6.9-0", manifest_digest="sha256:9") if image.repository == "etcd" else image
        for image in components.images
    )
    context = make_context(site, replace(components, images=images), site.directory / ".pai")
    other = build_inventory(context, dict.fromkeys(ROLES, "1"))
    plan = Upgrade().plan(site, observation(other, seen_at(inventory, "1.36.3")))
    steps = {step.name: step for step in plan.steps}
    assert steps["control-plane-1-images"].hosts[0].roles == ("system_images",)
    assert "workers-1-drain" not in steps, "nothing restarts for an image"


def test_what_is_new_in_pai_install_comes_with_apply(
    site: Site, inventory: Inventory, context: Context, snapshot: SnapshotAssertion
) -> None:
    other = build_inventory(context, {**dict.fromkeys(ROLES, "1"), "control_plane": "2"})
    with raises("upgrade-not-applied", "pai-install") as caught:
        Upgrade().plan(site, observation(other, seen_at(inventory, "1.36.3")))
    assert caught.value.remedy == snapshot


def test_apis_in_use_that_go_away_stop_it_by_name(
    site: Site, inventory: Inventory, newer: Inventory, snapshot: SnapshotAssertion
) -> None:
    use = ApiUse("example.io", "v1beta1", "widgets", "1.36", ("default/mine: written by kubectl",))
    seen = observation(newer, seen_at(inventory, "1.35.4"), deprecated=(use,))
    with raises("upgrade-apis-removed", "1", "API", "1.36.3") as caught:
        Upgrade().plan(site, seen)
    assert caught.value.details == snapshot
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    assert not Upgrade(force=True).plan(site, seen).empty


def test_apis_that_a_later_version_lacks_are_a_warning(site: Site, newer: Inventory) -> None:
    use = ApiUse("example.io", "v1beta1", "widgets", "1.40")
    assert removed_by((use,), "1.36.3") == ()
    seen = observation(newer, {}, deprecated=(use,))
    (finding,) = Upgrade().known(site, seen, Plan((), newer))
    assert (finding.id, finding.verdict.value) == ("deprecated-api", "WARN")


def test_a_deprecated_api_that_no_version_removes_is_no_warning(site: Site, newer: Inventory) -> None:
    """Every cluster's own controllers write Endpoints of v1."""
    seen = observation(newer, {}, deprecated=(ApiUse("", "v1", "endpoints", ""),))
    assert Upgrade().known(site, seen, Plan((), newer)) == ()


def test_pods_that_nothing_starts_again_stop_it(site: Site, inventory: Inventory, newer: Inventory) -> None:
    bare = pod("mine", "", node="worker1")
    seen = observation(newer, seen_at(inventory, "1.35.4"), answers=(tuple(map(node, NODES)), (bare,)))
    with raises("pods-without-controller", "1"):
        Upgrade().plan(site, seen)


@pytest.mark.parametrize(
    ("had", "target", "words"),
    [
        ("1.36.3", "1.36.2", "does not support downgrades"),
        ("1.34.1", "1.36.3", "minor by minor: first pai-install upgrade --to 1.35"),
        ("1.35.4", "2.0.0", "minor by minor"),
    ],
)
def test_kubernetes_goes_forward_one_minor_at_a_time(had: str, target: str, words: str) -> None:
    with pytest.raises(PaiError) as caught:
        require_kubernetes({"one": {"kubernetes": had}}, target)
    assert words in caught.value.remedy
    require_kubernetes({"one": {"kubernetes": "1.35.4"}, "new": {}}, "1.36.3")


def test_older_programs_than_the_machines_have_are_refused(site: Site, inventory: Inventory, newer: Inventory) -> None:
    machines = seen_at(inventory, "1.35.4")
    machines["worker1"] = machines["worker1"].model_copy(
        update={"programs": {"containerd": "9.0", "kubelet": "1.35.4"}}
    )
    with raises("upgrade-components-newer", "9.0", "worker1", "1.0"):
        Upgrade().plan(site, observation(newer, machines))


def test_every_control_plane_must_answer(site: Site, inventory: Inventory, newer: Inventory) -> None:
    machines = seen_at(inventory, "1.35.4", "worker1", "worker2")
    with raises("upgrade-control-planes-incomplete") as caught:
        Upgrade().plan(site, observation(newer, machines, unreachable={"master": "no route"}))
    assert caught.value.exit_code is ExitCode.UNREACHABLE


def test_the_file_and_the_option_must_agree(make_site: Callable[..., Site]) -> None:
    site = make_site(config=CONFIG + 'kubernetes_version: "1.35"\n')
    with raises("upgrade-version-differs-from-site", "kubernetes_version", "1.35") as caught:
        Upgrade(to="1.36.3").require(site)
    assert caught.value.exit_code is ExitCode.USAGE
    require_target(site, "1.35.4")
    exact = make_site(config=CONFIG + 'kubernetes_version: "1.36.3"\n')
    versions = Upgrade(to="1.36").versions(exact, Observation(Inventory({}, {}, {}), {}))
    assert versions["worker1"] == {"kubernetes": "1.36.3"}, "the file says the patch"


@pytest.mark.parametrize("version", ["9.99", "1.36.99", "soon"])
def test_an_unknown_version_is_refused_before_machines_are_observed(version: str, site: Site) -> None:
    with raises("kubernetes-version-not-in-source") as caught:
        Upgrade(to=version).require(site)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "1.36" in caught.value.remedy


def test_a_width_that_is_none_is_refused_before_anything_is_asked(site: Site) -> None:
    with raises("max-unavailable-invalid"):
        Upgrade(max_unavailable="half").require(site)
