"""The controllers of the site's scheduler: where they run, what they may do, and what they never stop."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import ADDONS, make_context, needed_components, part_named
from pai_install.site import Site
from pai_install.site.groups import namespace_of
from tests.addons import ROOT, addon_action
from tests.unit.plan.conftest import CONFIG, LAYOUT

MakeSite = Callable[..., Site]
CLUSTERS = "virtual-clusters: [{name: default, quota: [{sku: gpu, machines: 1}]}]\n"
KUEUE = "scheduler: {type: kueue}\n" + CLUSTERS
CONTROLLERS = ["jobset", "kueue"]
THREE_CONTROL_PLANES = LAYOUT.replace("machine-type: cpu, pai-worker", "machine-type: cpu, pai-master") + (
    '  - {hostname: master3, hostip: 10.0.0.4, machine-type: cpu, pai-master: "true"}\n'
)


@pytest.fixture
def kueue_site(make_site: MakeSite) -> Site:
    """One control plane, two workers, Kueue."""
    return make_site(config=CONFIG, services=KUEUE)


@pytest.fixture
def rendered(kueue_site: Site, components: ComponentSet) -> Callable[..., dict[str, Any]]:
    """Add-on -> its objects, by kind/name."""
    return lambda name, site=kueue_site: objects(name, site, components)


def objects(name: str, site: Site, components: ComponentSet) -> dict[str, Any]:
    """kind/name -> the object; the definitions of kinds are the stand-ins of the golden test."""
    context = make_context(site, components, Path("/s"))
    given = part_named(f"addon.{name}").variables(context, context.leader)
    assert given is not None
    (wanted,) = given.variables()["cluster_addons_wanted"]
    folder = ROOT / "addons" / name
    manifests = yaml.safe_load((folder / "tests" / "plain.input.yml").read_text())["manifests"]
    found = addon_action().objects_of(folder, wanted["values"], manifests)
    return {f"{it['kind']}/{it['metadata']['name']}": it for it in found}


def rules(found: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Those of all roles of a kind."""
    for name, entry in found.items():
        if name.startswith(f"{kind}/"):
            yield from entry["rules"]


def hooks(found: dict[str, Any]) -> list[dict[str, Any]]:
    """All that the API server asks."""
    return [hook for name, entry in found.items() if "WebhookConfiguration/" in name for hook in entry["webhooks"]]


@pytest.mark.parametrize(
    "services", ["", f"scheduler: {{type: default}}\n{CLUSTERS}", f"scheduler: {{type: volcano}}\n{CLUSTERS}"]
)
def test_another_scheduler_has_none_of_them(make_site: MakeSite, services: str) -> None:
    site = make_site(config=CONFIG, services=services)
    assert not {part.addon for part in ADDONS if part.wanted(site)} & set(CONTROLLERS)
    assert not set(CONTROLLERS) & set(needed_components(site))


def test_a_site_fetches_the_components_of_its_scheduler(make_site: MakeSite, kueue_site: Site) -> None:
    bare = make_site(config=CONFIG, services=f"scheduler: {{type: default}}\n{CLUSTERS}")
    assert set(needed_components(kueue_site)) - set(needed_components(bare)) == set(CONTROLLERS)


@pytest.mark.parametrize("name", CONTROLLERS)
def test_only_control_planes_hold_their_images(kueue_site: Site, name: str) -> None:
    part = part_named(f"addon.{name}")
    assert {it.hostname: part.images(kueue_site, it) for it in kueue_site.machines} == {
        "master": (name,),
        "worker1": (),
        "worker2": (),
    }


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize(("layout", "replicas"), [(LAYOUT, 1), (THREE_CONTROL_PLANES, 2)])
def test_one_stands_by_where_there_are_several_control_planes(
    make_site: MakeSite, rendered: Callable[..., dict[str, Any]], name: str, layout: str, replicas: int
) -> None:
    found = rendered(name, make_site(layout, CONFIG, KUEUE))
    assert found[f"Deployment/{name}-controller-manager"]["spec"]["replicas"] == replicas


@pytest.mark.parametrize("name", CONTROLLERS)
class TestController:
    """Each of them."""

    def test_pod_is_as_restricted_as_its_namespace_asks(
        self, name: str, rendered: Callable[..., dict[str, Any]]
    ) -> None:
        found = rendered(name)
        labels = found[f"Namespace/pai-{name}"]["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        pod = found[f"Deployment/{name}-controller-manager"]["spec"]["template"]["spec"]
        assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"]) == (65532, True)
        (container,) = pod["containers"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
        assert re.fullmatch(rf"registry\.pai\.internal/{name}:\S+@sha256:\S+", container["image"])

    def test_pods_are_reached_by_the_api_server_and_reach_nothing_else(
        self, name: str, rendered: Callable[..., dict[str, Any]]
    ) -> None:
        policy = rendered(name)[f"NetworkPolicy/{name}"]["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert policy["ingress"] == [{"ports": [{"port": "webhook", "protocol": "TCP"}]}]
        assert policy["egress"] == [{"ports": [{"port": 6443, "protocol": "TCP"}]}]

    def test_no_right_is_more_than_is_named(self, name: str, rendered: Callable[..., dict[str, Any]]) -> None:
        found = rendered(name)
        for rule in (*rules(found, "ClusterRole"), *rules(found, "Role")):
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])
        roles = {it["roleRef"]["name"] for kind, it in found.items() if kind.partition("/")[0].endswith("RoleBinding")}
        assert roles == {f"pai-{name}", f"{name}-controller-manager"}

    def test_secrets_are_read_in_its_own_namespace_alone(
        self, name: str, rendered: Callable[..., dict[str, Any]]
    ) -> None:
        found = rendered(name)
        assert not [it for it in rules(found, "ClusterRole") if "secrets" in it["resources"]]
        written = [it for it in rules(found, "Role") if "secrets" in it["resources"] and "update" in it["verbs"]]
        assert [it["resourceNames"] for it in written] == [[f"{name}-webhook-server-cert"]]

    def test_what_everybody_asks_is_changed_by_name(self, name: str, rendered: Callable[..., dict[str, Any]]) -> None:
        """A certificate is written into our own configurations, never into those of others."""
        shared = {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "customresourcedefinitions"}
        found = rendered(name)
        for rule in rules(found, "ClusterRole"):
            if shared & set(rule["resources"]) and "update" in rule["verbs"]:
                assert set(rule["resourceNames"]) <= {kind.partition("/")[2] for kind in found}

    def test_the_system_needs_none_of_them(self, name: str, rendered: Callable[..., dict[str, Any]]) -> None:
        """While it is down, pods and jobs of the system's own namespaces are made as ever."""
        own = {"kueue.x-k8s.io", "jobset.x-k8s.io"}
        for hook in hooks(rendered(name)):
            groups = {group for rule in hook["rules"] for group in rule["apiGroups"]}
            if not groups <= own:
                assert is_for_users_alone(hook) or "objectSelector" in hook, hook["name"]

    def test_another_configuration_counts_when_the_rollout_has_ended(
        self, name: str, rendered: Callable[..., dict[str, Any]]
    ) -> None:
        found = rendered(name)
        template = found[f"Deployment/{name}-controller-manager"]["spec"]["template"]
        text = found[f"ConfigMap/{name}-controller-manager"]["data"]["configuration.yaml"]
        digest = addon_action().hashlib.sha256(text.encode()).hexdigest()
        assert template["metadata"]["annotations"] == {"pai-install/configuration": digest[:16]}


def is_for_users_alone(hook: dict[str, Any]) -> bool:
    """Whether it is about no namespace in which the system has pods, and about those of all groups."""
    conditions = " && ".join(it["expression"] for it in hook.get("matchConditions", ()))
    left_out = tuple(re.findall(r"!request\.namespace\.startsWith\('([^']+)'\)", conditions))
    system = {"kube-system", "kube-public", "kube-node-lease", *(name for it in ADDONS for name in it.namespaces)}
    theirs = {namespace_of(group) for group in ("vision", "default", "kubeflow", "painters")}
    return all(name.startswith(left_out) for name in system) and not any(name.startswith(left_out) for name in theirs)


def test_kueue_queues_jobs_and_never_pods(rendered: Callable[..., dict[str, Any]]) -> None:
    found = rendered("kueue")
    configuration = yaml.safe_load(found["ConfigMap/kueue-controller-manager"]["data"]["configuration.yaml"])
    assert configuration["integrations"] == {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]}
    assert configuration["manageJobsWithoutQueueName"] is False
    asked = {name for hook in hooks(found) for rule in hook["rules"] for name in rule["resources"]}
    assert not {"pods", "deployments", "statefulsets"} & asked


def test_a_job_whose_pods_do_not_come_gives_back_its_quota(rendered: Callable[..., dict[str, Any]]) -> None:
    found = rendered("kueue")
    configuration = yaml.safe_load(found["ConfigMap/kueue-controller-manager"]["data"]["configuration.yaml"])
    assert configuration["waitForPodsReady"] == {
        "timeout": "5m",
        "blockAdmission": False,
        "requeuingStrategy": {"timestamp": "Eviction", "backoffBaseSeconds": 60, "backoffMaxSeconds": 3600},
    }


def test_kueue_is_down_and_namespaces_can_still_be_deleted(rendered: Callable[..., dict[str, Any]]) -> None:
    """An API server of its own that does not answer would stop the deletion of every namespace."""
    found = rendered("kueue")
    assert not [name for name in found if name.startswith("APIService/")]
    configuration = yaml.safe_load(found["ConfigMap/kueue-controller-manager"]["data"]["configuration.yaml"])
    assert configuration["featureGates"]["VisibilityOnDemand"] is False


def test_kueue_starts_when_the_kinds_of_its_jobs_are_there() -> None:
    names = [part.addon for part in ADDONS]
    assert names.index("jobset") < names.index("kueue")
