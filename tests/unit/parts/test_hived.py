"""The add-on hived: one pod, least rights, nothing open but what probes and Prometheus ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.agents.hived_bridge.__main__ import CALL_LIMIT_S
from pai_install.agents.hived_bridge.settings import parse
from pai_install.components.model import ComponentSet
from pai_install.parts.registry import ADDONS, make_context, needed_components, part_named
from pai_install.schedulers.last_applied import KEPT, kept_of
from pai_install.scheduling.model import Scheduling
from pai_install.site import Site
from tests.addons import ROOT, addon_action
from tests.unit.plan.conftest import CONFIG

MakeSite = Callable[..., Site]
FOLDER = ROOT / "addons/hived"
CLUSTERS = "virtual-clusters: [{name: a, quota: [{sku: gpu, machines: 1}]}]\n"
HIVED = f"scheduler: {{type: hived}}\n{CLUSTERS}"


@pytest.fixture
def hived_site(make_site: MakeSite) -> Site:
    """One control plane, two workers, HiveD."""
    return make_site(config=CONFIG, services=HIVED)


@pytest.fixture
def found(hived_site: Site, components: ComponentSet) -> dict[str, Any]:
    """kind/name -> the object."""
    return objects(hived_site, components)


def objects(site: Site, components: ComponentSet) -> dict[str, Any]:
    context = make_context(site, components, Path("/s"))
    given = part_named("addon.hived").variables(context, context.leader)
    assert given is not None
    (wanted,) = given.variables()["cluster_addons_wanted"]
    return {
        f"{it['kind']}/{it['metadata']['name']}": it for it in addon_action().objects_of(FOLDER, wanted["values"], ())
    }


def pod(found: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = found["Deployment/hived"]["spec"]["template"]["spec"]
    return spec


def containers(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    spec = pod(found)
    return {it["name"]: it for it in (*spec["initContainers"], *spec["containers"])}


def test_what_only_pai_install_keeps_restarts_nothing(make_site: MakeSite, components: ComponentSet) -> None:
    texts = (HIVED, HIVED.replace("machines: 1", "machines: 1, lend: none"))
    one, other = (objects(make_site(config=CONFIG, services=text), components) for text in texts)
    name = f"ConfigMap/{KEPT}"
    assert one[name] != other[name]
    assert [(kept_of(it[name]) or Scheduling("kueue", {}, ())).backend for it in (one, other)] == ["hived", "hived"]
    assert one["Deployment/hived"] == other["Deployment/hived"]


@pytest.mark.parametrize("services", ["", f"scheduler: {{type: kueue}}\n{CLUSTERS}"])
def test_another_scheduler_needs_none_of_it(make_site: MakeSite, services: str) -> None:
    site = make_site(config=CONFIG, services=services)
    assert "hived" not in {part.addon for part in ADDONS if part.wanted(site)}
    assert not {"hivedscheduler", "python"} & set(needed_components(site))


def test_site_with_it_fetches_its_components_and_control_planes_alone_hold_them(hived_site: Site) -> None:
    assert {"hivedscheduler", "python"} <= set(needed_components(hived_site))
    held = {it.hostname: set(part_named("addon.hived").images(hived_site, it)) for it in hived_site.machines}
    assert held == {"master": {"hivedscheduler", "kube-scheduler", "python"}, "worker1": set(), "worker2": set()}


def test_there_is_never_more_than_one(found: dict[str, Any]) -> None:
    spec = found["Deployment/hived"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_every_file_of_the_bridge_is_there(found: dict[str, Any]) -> None:
    agents = ROOT / "installer/pai_install/agents"
    paths = [agents / "__init__.py", *agents.glob("common/*.py"), *agents.glob("hived_bridge/*.py")]
    data = found["ConfigMap/hived-bridge"]["data"]
    (volume,) = [it["configMap"] for it in pod(found)["volumes"] if it["name"] == "bridge"]
    mounted = {item["path"]: data[item["key"]] for item in volume["items"]}
    assert mounted == {path.relative_to(agents.parents[1]).as_posix(): path.read_text() for path in paths}
    assert len(data) == len(mounted)


def test_bridge_understands_what_it_is_told(found: dict[str, Any]) -> None:
    settings = parse(containers(found)["bridge"]["args"])
    assert (str(settings.wanted), settings.record) == ("/etc/hived/hivedscheduler.yaml", "hived-last-good")
    assert containers(found)["bridge"]["restartPolicy"] == "Always"


def test_calls_go_from_kube_scheduler_to_the_bridge_to_hived(found: dict[str, Any]) -> None:
    settings = parse(containers(found)["bridge"]["args"])
    scheduler = yaml.safe_load(found["ConfigMap/kube-scheduler"]["data"]["config.yaml"])
    (extender,) = scheduler["extenders"]
    assert extender["urlPrefix"] == f"http://127.0.0.1:{settings.extender_port}/v1/extender"
    hived = yaml.safe_load(found["ConfigMap/hivedscheduler"]["data"]["hivedscheduler.yaml"])
    assert hived["webServerAddress"] == f"127.0.0.1:{settings.hived_port}"


def test_kube_scheduler_waits_as_long_as_the_bridge_may_take(found: dict[str, Any]) -> None:
    settings = parse(containers(found)["bridge"]["args"])
    (extender,) = yaml.safe_load(found["ConfigMap/kube-scheduler"]["data"]["config.yaml"])["extenders"]
    waits = float(extender["httpTimeout"].removesuffix("s"))
    filtering = 2 * settings.delay_s + 2 * settings.hived_timeout_s
    assert filtering + settings.hived_timeout_s + settings.eviction_wait_s <= waits <= CALL_LIMIT_S


def test_hived_reads_what_the_bridge_writes(found: dict[str, Any]) -> None:
    given = containers(found)
    (configuration,) = [it["value"] for it in given["hived"]["env"] if it["name"] == "CONFIG"]
    assert configuration == str(parse(given["bridge"]["args"]).used)
    mounts = {name: {it["name"]: it for it in given[name]["volumeMounts"]} for name in ("hived", "bridge")}
    assert mounts["hived"]["used"]["mountPath"] == mounts["bridge"]["used"]["mountPath"]
    assert "readOnly" not in mounts["bridge"]["used"]
    assert "wanted" not in mounts["hived"]


def test_only_probes_and_metrics_are_open(found: dict[str, Any]) -> None:
    assert found["NetworkPolicy/hived"]["spec"]["ingress"] == [{"ports": [{"port": "open", "protocol": "TCP"}]}]
    assert not [name for name in found if name.startswith("Service/")]
    assert "hostNetwork" not in pod(found)


def test_pod_has_no_more_power_than_it_needs(found: dict[str, Any]) -> None:
    assert pod(found)["securityContext"]["runAsNonRoot"] is True
    for given in containers(found).values():
        context = given["securityContext"]
        assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in given["resources"]["limits"]


def test_bridge_writes_one_configmap_and_no_other(found: dict[str, Any]) -> None:
    (rule,) = found["Role/hived-last-good"]["rules"]
    assert (rule["resourceNames"], rule["verbs"]) == (["hived-last-good"], ["get", "patch"])
    # what it keeps is not ours: apply would take it away
    assert "data" not in found["ConfigMap/hived-last-good"]


def test_bridge_may_do_what_it_does(found: dict[str, Any]) -> None:
    pods = [set(rule["verbs"]) for rule in found["ClusterRole/pai-hived"]["rules"] if "pods" in rule["resources"]]
    assert {"list", "delete"} <= set().union(*pods)
    (subject,) = found["RoleBinding/hived-last-good"]["subjects"]
    assert subject["name"] == pod(found)["serviceAccountName"] == found["ServiceAccount/hived"]["metadata"]["name"]


def test_rollout_says_whether_a_changed_configuration_counts(
    found: dict[str, Any], make_site: MakeSite, components: ComponentSet
) -> None:
    other = objects(make_site(config=CONFIG, services=HIVED.replace("name: a", "name: b")), components)
    name = "pai-install/configuration"
    digests = [it["Deployment/hived"]["spec"]["template"]["metadata"]["annotations"][name] for it in (found, other)]
    assert len(set(digests)) == 2
    assert part_named("addon.hived").definition.waits == ("pai-hived deployment/hived",)  # type: ignore[attr-defined]
