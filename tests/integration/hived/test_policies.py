"""What the API server itself refuses beside HiveD: the pods by which any user could crash it or get past it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest

from tests.integration.hived.conftest import Api, Json, apply_addon
from tests.integration.hived.pods import MARKER, SPEC, annotation, pod
from tests.integration.shared_control_plane import wait_for_policies, wait_for_rights

VISIBLE = "NVIDIA_VISIBLE_DEVICES"


@pytest.fixture(scope="module")
def alice(api: Api) -> Api:
    """A user who may make pods everywhere, and the policies, once they count."""
    apply_addon(api)
    version = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}
    api.apply({**version, "kind": "ClusterRole", "metadata": {"name": "pods"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pods"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    made = {"kind": "ClusterRoleBinding", "metadata": {"name": "pods"}, "roleRef": reference, "subjects": subjects}
    api.apply({**version, **made})
    wait_for_policies(api)
    wait_for_rights(api)
    return api.as_("alice-token")


def refused(user: Api, entry: Json) -> str:
    """Why a pod is refused; nothing is kept of one that is not."""
    why = user.create(entry)
    if not why:
        path = f"/api/v1/namespaces/{entry['metadata']['namespace']}/pods/{entry['metadata']['name']}"
        user.ask("DELETE", f"{path}?gracePeriodSeconds=0")
    return why


def changed(change: Callable[[Json], object]) -> Json:
    """A good pod with one change."""
    entry = deepcopy(pod("probe", "research"))
    change(entry)
    return entry


def show(entry: Json, value: str) -> None:
    entry["spec"]["containers"][0]["env"] = [{"name": VISIBLE, "value": value}]


def note(text: str) -> Callable[[Json], object]:
    return lambda it: it["metadata"]["annotations"].update({SPEC: text})


GOOD = annotation("research", 10, 1)
WRONG: dict[str, tuple[Callable[[Json], object], str]] = {
    "a node of its own choice crashes HiveD": (lambda it: it["spec"].update(nodeName="a100-1"), "nodeName"),
    "past HiveD without the marker": (lambda it: it["spec"]["containers"][0].pop("resources"), MARKER),
    "the marker with another scheduler": (lambda it: it["spec"].pop("schedulerName"), MARKER),
    "all devices by the environment": (lambda it: show(it, "all"), VISIBLE),
    "one device by the environment": (lambda it: show(it, "0"), VISIBLE),
    "no annotation": (lambda it: it["metadata"].pop("annotations"), SPEC),
    "onto nodes that refuse it": (
        note(GOOD.replace("ignoreK8sSuggestedNodes: false", "ignoreK8sSuggestedNodes: true")),
        "ignoreK8s",
    ),
    "onto nodes that refuse it, by default": (note(GOOD.replace("ignoreK8sSuggestedNodes: false", "")), "ignoreK8s"),
    "another team's virtual cluster": (note(annotation("product", 10, 1)), "virtualCluster: research"),
    "another team's scheduler": (lambda it: it["spec"].update(schedulerName="hivedscheduler-ds-product"), "product"),
    "bound by itself": (
        lambda it: it["metadata"]["annotations"].update({"hivedscheduler.microsoft.com/pod-bind-info": "x"}),
        "written by HiveD",
    ),
    "a gang of another team": (
        note(annotation("research", 10, 1, ("a", 2)).replace("research.a", "product.a")),
        "begins",
    ),
    "an annotation that says a key twice": (note(f"{GOOD}\npriority: 120"), SPEC),
    "devices of Kubernetes": (
        lambda it: it["spec"]["containers"][0]["resources"]["limits"].update({"nvidia.com/gpu": "1"}),
        "devices are given by HiveD",
    ),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_pod_is_refused_and_told_why(alice: Api, change: Callable[[Json], object], words: str) -> None:
    assert words in refused(alice, changed(change))


def test_priority_above_the_highest_is_refused(alice: Api) -> None:
    assert "above the highest" in refused(alice, pod("probe", "product", 120))


@pytest.mark.parametrize(
    "entry",
    [
        pod("probe", "research"),
        pod("probe", "product", 100, 2, ("gang", 2)),
        pod("probe", "research", -1),
        changed(note(f"{GOOD}\naffinityGroup: null")),
        changed(lambda it: show(it, "void")),
        changed(note(f"{GOOD}\npinnedCellId: VC1-K80\nlazyPreemptionEnable: true\ngangReleaseEnable: true")),
    ],
    ids=["plain", "gang", "opportunistic", "no gang", "no device", "options"],
)
def test_pod_of_hived_passes(alice: Api, entry: Json) -> None:
    assert refused(alice, entry) == ""


def test_pod_of_others_passes(alice: Api) -> None:
    plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain", "namespace": "default"}}
    assert refused(alice, {**plain, "spec": {"containers": [{"name": "main", "image": "none"}]}}) == ""
