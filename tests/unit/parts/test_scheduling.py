"""The controllers of the site's scheduler: where they run, what they may do, and what they never stop."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import ADDONS, make_context, needed_components, part_named
from pai_install.registry.compile import served_names
from pai_install.registry.identity import Identity, make_identity
from pai_install.site import Site
from pai_install.site.groups import namespace_of
from tests.addons import ROOT, addon_action
from tests.unit.plan.conftest import CONFIG, LAYOUT

MakeSite = Callable[..., Site]
Render = Callable[..., dict[str, Any]]
KUEUE = "scheduler: {type: kueue}\n"
VOLCANO = "scheduler: {type: volcano}\n"
KUBEFLOW = "scheduler: {type: kueue, training-operator: true}\n"
SERVICES = {"volcano": VOLCANO, "training_operator": KUBEFLOW}
DEPLOYMENTS = [
    ("jobset", "jobset-controller-manager"),
    ("kueue", "kueue-controller-manager"),
    ("training_operator", "training-operator"),
    ("volcano", "volcano-admission"),
    ("volcano", "volcano-controllers"),
    ("volcano", "volcano-scheduler"),
]
WRITTEN = {"training_operator": "training-operator-webhook-cert"}
ADD_ONS = ["jobset", "kueue", "training_operator", "volcano"]
OWN_KINDS = {
    *("jobset.x-k8s.io", "kueue.x-k8s.io"),
    *("batch.volcano.sh", "scheduling.volcano.sh", "topology.volcano.sh", "kubeflow.org"),
}
THREE_CONTROL_PLANES = LAYOUT.replace("machine-type: cpu, pai-worker", "machine-type: cpu, pai-master") + (
    '  - {hostname: master3, hostip: 10.0.0.4, machine-type: cpu, pai-master: "true"}\n'
)


@pytest.fixture
def rendered(make_site: MakeSite, components: ComponentSet) -> Render:
    """Add-on -> its objects, by kind/name. layout: the site's."""

    def render(name: str, layout: str = LAYOUT) -> dict[str, Any]:
        site = make_site(layout, CONFIG, SERVICES.get(name, KUEUE))
        return objects(name, site, components, make_identity(served_names(site), datetime.now(UTC)))

    return render


def objects(name: str, site: Site, components: ComponentSet, identity: Identity | None = None) -> dict[str, Any]:
    """kind/name -> the object; the definitions of kinds are the stand-ins of the golden test."""
    context = make_context(site, components, Path("/s"), identity)
    given = part_named(f"addon.{name}").variables(context, context.leader)
    assert given is not None
    (wanted,) = given.variables()["cluster_addons_wanted"]
    folder = ROOT / "addons" / name
    manifests = yaml.safe_load((folder / "tests" / "plain.input.yml").read_text())["manifests"]
    found = addon_action().objects_of(folder, wanted["values"], manifests)
    return {f"{it['kind']}/{it['metadata']['name']}": it for it in found}


def dashed(name: str) -> str:
    """An add-on's name as its objects and its component have it."""
    return name.replace("_", "-")


def rules(found: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Those of all roles of a kind."""
    for name, entry in found.items():
        if name.startswith(f"{kind}/"):
            yield from entry["rules"]


def hooks(found: dict[str, Any]) -> list[dict[str, Any]]:
    """All that the API server asks."""
    return [hook for name, entry in found.items() if "WebhookConfiguration/" in name for hook in entry["webhooks"]]


@pytest.mark.parametrize(
    ("services", "wanted"),
    [
        ("scheduler:\n", []),
        ("scheduler: {type: default}\n", ["jobset"]),
        (KUEUE, ["jobset", "kueue"]),
        (VOLCANO, ["volcano"]),
        (KUBEFLOW, ["jobset", "training_operator", "kueue"]),
        ("scheduler: {type: volcano, training-operator: true}\n", ["volcano", "training_operator"]),
        ("scheduler: {type: default, training-operator: true}\n", ["jobset", "training_operator"]),
    ],
)
def test_a_site_has_and_fetches_what_belongs_to_its_scheduler(
    make_site: MakeSite, services: str, wanted: list[str]
) -> None:
    site = make_site(config=CONFIG, services=services)
    assert [part.addon for part in ADDONS if part.addon in ADD_ONS and part.wanted(site)] == wanted
    fetched = set(needed_components(site)) & {dashed(name) for name in ADD_ONS}
    assert fetched == {dashed(name) for name in wanted}


def test_only_control_planes_hold_their_images(make_site: MakeSite) -> None:
    site = make_site(config=CONFIG, services=KUEUE)
    held = {it.hostname: part_named("addon.kueue").images(site, it) for it in site.machines}
    assert held == {"master": ("kueue",), "worker1": (), "worker2": ()}


@pytest.mark.parametrize(("name", "deployment"), DEPLOYMENTS)
class TestDeployment:
    """Each of them."""

    @pytest.mark.parametrize(("layout", "replicas"), [(LAYOUT, 1), (THREE_CONTROL_PLANES, 2)])
    def test_one_stands_by_where_there_are_several_control_planes(
        self, name: str, deployment: str, rendered: Render, layout: str, replicas: int
    ) -> None:
        assert rendered(name, layout)[f"Deployment/{deployment}"]["spec"]["replicas"] == replicas

    def test_pod_is_as_restricted_as_its_namespace_asks(self, name: str, deployment: str, rendered: Render) -> None:
        found = rendered(name)
        labels = found[f"Namespace/pai-{dashed(name)}"]["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        pod = found[f"Deployment/{deployment}"]["spec"]["template"]["spec"]
        assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"]) == (65532, True)
        (container,) = pod["containers"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
        assert re.fullmatch(r"registry\.pai\.internal/[a-z-]+:\S+@sha256:\S+", container["image"])

    def test_another_configuration_counts_when_the_rollout_has_ended(
        self, name: str, deployment: str, rendered: Render
    ) -> None:
        found = rendered(name)
        texts = [text for entry in found.values() if entry["kind"] == "ConfigMap" for text in entry["data"].values()]
        if name == "volcano":
            texts += [base64.b64decode(found["Secret/volcano-admission"]["data"]["tls.crt"]).decode(), ""]
        digests = [sha256(text.encode()).hexdigest()[:16] for text in texts]
        template = found[f"Deployment/{deployment}"]["spec"]["template"]
        assert template["metadata"]["annotations"]["pai-install/configuration"] in digests


@pytest.mark.parametrize("name", ADD_ONS)
class TestAddOn:
    """Each of them."""

    def test_pods_are_reached_by_the_api_server_and_reach_nothing_else(self, name: str, rendered: Render) -> None:
        policy = rendered(name)[f"NetworkPolicy/{dashed(name)}"]["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert policy["ingress"] == [{"ports": [{"port": "webhook", "protocol": "TCP"}]}]
        assert policy["egress"] == [{"ports": [{"port": 6443, "protocol": "TCP"}]}]

    def test_no_right_is_more_than_is_named(self, name: str, rendered: Render) -> None:
        found = rendered(name)
        for rule in (*rules(found, "ClusterRole"), *rules(found, "Role")):
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])
        roles = {it["roleRef"]["name"] for kind, it in found.items() if kind.partition("/")[0].endswith("RoleBinding")}
        assert roles <= {kind.partition("/")[2] for kind in found}, "its own, none of Kubernetes'"

    def test_secrets_are_read_in_its_own_namespace_alone(self, name: str, rendered: Render) -> None:
        found = rendered(name)
        assert not [it for it in rules(found, "ClusterRole") if "secrets" in it["resources"]]
        written = [it for it in rules(found, "Role") if "secrets" in it["resources"] and "update" in it["verbs"]]
        assert all(it["resourceNames"] == [WRITTEN.get(name, f"{name}-webhook-server-cert")] for it in written)

    def test_what_everybody_asks_is_changed_by_name(self, name: str, rendered: Render) -> None:
        """A certificate is written into our own configurations, never into those of others."""
        shared = {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "customresourcedefinitions"}
        found = rendered(name)
        for rule in rules(found, "ClusterRole"):
            if shared & set(rule["resources"]) and "update" in rule["verbs"]:
                assert set(rule["resourceNames"]) <= {kind.partition("/")[2] for kind in found}

    def test_the_system_needs_none_of_them(self, name: str, rendered: Render) -> None:
        """While it is down, pods and jobs of the system's own namespaces are made as ever."""
        for hook in hooks(rendered(name)):
            groups = {group for rule in hook["rules"] for group in rule["apiGroups"]}
            if not groups <= OWN_KINDS:
                assert is_for_users_alone(hook) or "objectSelector" in hook, hook["name"]


def is_for_users_alone(hook: dict[str, Any]) -> bool:
    """Whether it is about no namespace in which the system has pods, and about those of all groups."""
    conditions = " && ".join(it["expression"] for it in hook.get("matchConditions", ()))
    left_out = tuple(re.findall(r"!request\.namespace\.startsWith\('([^']+)'\)", conditions))
    system = {"kube-system", "kube-public", "kube-node-lease", *(name for it in ADDONS for name in it.namespaces)}
    theirs = {namespace_of(group) for group in ("vision", "default", "kubeflow", "painters")}
    return all(name.startswith(left_out) for name in system) and not any(name.startswith(left_out) for name in theirs)


def test_kueue_queues_jobs_and_never_pods(rendered: Render) -> None:
    found = rendered("kueue")
    configuration = yaml.safe_load(found["ConfigMap/kueue-controller-manager"]["data"]["configuration.yaml"])
    assert configuration["integrations"] == {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]}
    assert configuration["manageJobsWithoutQueueName"] is False
    asked = {name for hook in hooks(found) for rule in hook["rules"] for name in rule["resources"]}
    assert not {"pods", "deployments", "statefulsets"} & asked


def test_kueue_queues_kubeflows_jobs_where_something_runs_them(make_site: MakeSite, components: ComponentSet) -> None:
    found = objects("kueue", make_site(config=CONFIG, services=KUBEFLOW), components)
    configuration = yaml.safe_load(found["ConfigMap/kueue-controller-manager"]["data"]["configuration.yaml"])
    theirs = [f"kubeflow.org/{name}job" for name in ("tf", "pytorch", "xgboost", "paddle", "jax")]
    assert configuration["integrations"]["frameworks"] == ["batch/job", "jobset.x-k8s.io/jobset", *theirs]
    asked = {name for hook in hooks(found) for rule in hook["rules"] for name in rule["resources"]}
    ruled = {name for rule in rules(found, "ClusterRole") for name in rule["resources"]}
    assert {f"{name.partition('/')[2]}s" for name in theirs} <= asked & ruled


def test_kubeflows_jobs_are_gangs_where_volcano_places_them(make_site: MakeSite, components: ComponentSet) -> None:
    for scheduler, gangs in (("kueue", False), ("volcano", True), ("default", False)):
        services = f"scheduler: {{type: {scheduler}, training-operator: true}}\n"
        found = objects("training_operator", make_site(config=CONFIG, services=services), components)
        (container,) = found["Deployment/training-operator"]["spec"]["template"]["spec"]["containers"]
        assert ("--gang-scheduler-name=volcano" in container["args"]) == gangs
        groups = next(it for it in rules(found, "ClusterRole") if it["resources"] == ["podgroups"])
        assert ("create" in groups["verbs"]) == gangs


def test_the_training_operator_runs_no_commands_in_pods(rendered: Render) -> None:
    """MPIJobs would take that, in the pods of all."""
    found = rendered("training_operator")
    ruled = {name for kind in ("ClusterRole", "Role") for rule in rules(found, kind) for name in rule["resources"]}
    assert not {"pods/exec", "mpijobs", "roles", "rolebindings", "serviceaccounts"} & ruled


def test_a_job_whose_pods_do_not_come_gives_back_its_quota(rendered: Render) -> None:
    found = rendered("kueue")
    configuration = yaml.safe_load(found["ConfigMap/kueue-controller-manager"]["data"]["configuration.yaml"])
    assert configuration["waitForPodsReady"] == {
        "timeout": "5m",
        "recoveryTimeout": "4m",
        "blockAdmission": False,
        "requeuingStrategy": {"timestamp": "Eviction", "backoffBaseSeconds": 60, "backoffMaxSeconds": 3600},
    }


def test_kueue_is_down_and_namespaces_can_still_be_deleted(rendered: Render) -> None:
    """An API server of its own that does not answer would stop the deletion of every namespace."""
    found = rendered("kueue")
    assert not [name for name in found if name.startswith("APIService/")]
    configuration = yaml.safe_load(found["ConfigMap/kueue-controller-manager"]["data"]["configuration.yaml"])
    assert configuration["featureGates"]["VisibilityOnDemand"] is False


def test_kueue_starts_when_the_kinds_of_its_jobs_are_there() -> None:
    names = [part.addon for part in ADDONS]
    assert max(names.index("jobset"), names.index("training_operator")) < names.index("kueue")
    assert names.index("volcano") < names.index("training_operator")


def test_volcano_reclaims_what_a_queue_deserves(rendered: Render) -> None:
    text = rendered("volcano")["ConfigMap/volcano-scheduler"]["data"]["volcano-scheduler.conf"]
    configuration = yaml.safe_load(text)
    assert configuration["actions"] == "enqueue, allocate, reclaim, backfill"
    plugins = {plugin["name"] for tier in configuration["tiers"] for plugin in tier["plugins"]}
    assert {"gang", "capacity", "priority", "conformance", "predicates", "nodeorder", "binpack"} <= plugins
    assert "proportion" not in plugins


def test_volcano_packs_devices_tightly(rendered: Render) -> None:
    """Jobs of one device each, spread over all machines, leave none whole to a job that needs one."""
    text = rendered("volcano")["ConfigMap/volcano-scheduler"]["data"]["volcano-scheduler.conf"]
    plugins = [plugin for tier in yaml.safe_load(text)["tiers"] for plugin in tier["plugins"]]
    (arguments,) = (plugin["arguments"] for plugin in plugins if plugin["name"] == "binpack")
    assert arguments["binpack.resources"] == "nvidia.com/gpu"
    assert arguments["binpack.resources.nvidia.com/gpu"] == 10


def test_volcano_answers_by_a_name_that_the_api_server_trusts(make_site: MakeSite, components: ComponentSet) -> None:
    site = make_site(config=CONFIG, services=VOLCANO)
    identity = make_identity(served_names(site), datetime.now(UTC))
    found = objects("volcano", site, components, identity)
    assert identity.webhook is not None
    service = found["Service/volcano-admission-service"]["metadata"]
    assert identity.webhook.names == (f"{service['name']}.{service['namespace']}.svc",)
    secret = {name: base64.b64decode(text).decode() for name, text in found["Secret/volcano-admission"]["data"].items()}
    assert (secret["tls.crt"], secret["ca.crt"]) == (identity.webhook.certificate, identity.bundle)
    for hook in hooks(found):
        assert base64.b64decode(hook["clientConfig"]["caBundle"]).decode() == identity.bundle
        assert hook["clientConfig"]["service"]["name"] == service["name"]


def test_volcano_asks_for_no_definition_that_it_lacks(rendered: Render) -> None:
    """Its scheduler waits for ever for kinds that are not there; those of the switched off features are left out."""
    arguments = rendered("volcano")["Deployment/volcano-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--feature-gates=DynamicResourceAllocation=false,ResourceTopology=false" in arguments
