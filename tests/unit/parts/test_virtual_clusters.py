"""From a site's sections to the objects that the add-on applies, and the labels that they match."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import ADDONS, make_context, part_named
from pai_install.profile.project import profile_of
from pai_install.profile.publish import profile_object
from pai_install.schedulers.compile import objects_of
from pai_install.scheduling.read import scheduling_of
from pai_install.site import Site
from tests.addons import ROOT, addon_action
from tests.unit.plan.conftest import LAYOUT

MakeSite = Callable[..., Site]
CLUSTERS = """\
virtual-clusters:
  - {name: research, groups: [Vision], quota: [{sku: gpu, devices: 4, lend: 2}], pinned: [worker2]}
  - {name: default, quota: [{sku: gpu, devices: 2, borrow: none}]}
authentication:
  group-manager:
    default-group: {groupname: default}
    grouplist: [{groupname: Vision}]
"""
BLOCK = """\
hivedscheduler:
  config: |
    physicalCluster:
      cellTypes:
        gpu-NODE: {childCellType: gpu, childCellNumber: 8, isNodeLevel: true}
        gpu-NODE-POOL: {childCellType: gpu-NODE, childCellNumber: 1}
      physicalCells:
      - {cellType: gpu-NODE-POOL, cellChildren: [{cellAddress: worker1}]}
    virtualClusters:
      default:
        virtualCells: [{cellType: gpu-NODE-POOL.gpu-NODE, cellNumber: 1}]
"""


def services(scheduler: str) -> str:
    return f"scheduler: {{type: {scheduler}}}\n{CLUSTERS}"


def applied(site: Site, components: ComponentSet) -> list[dict[str, Any]]:
    """The objects as they reach the cluster, without the labels of add-ons."""
    context = make_context(site, components, Path("/s"))
    given = part_named("addon.virtual_clusters").variables(context, context.leader)
    assert given is not None
    (wanted,) = given.variables()["cluster_addons_wanted"]
    found = addon_action().objects_of(ROOT / "addons" / "virtual_clusters", wanted["values"], [])
    for it in found:
        assert it["metadata"].pop("labels")["pai-install/addon"] == "virtual_clusters"
    return list(found)


def labels(site: Site, components: ComponentSet) -> dict[str, dict[str, str] | None]:
    """Machine -> node labels."""
    context = make_context(site, components, Path("/s"))
    part = part_named("node_labels")
    found = {it.hostname: part.variables(context, it) for it in site.machines}
    return {name: it.variables()["node_labels_labels"] if it is not None else None for name, it in found.items()}


@pytest.mark.parametrize("scheduler", ["kueue", "volcano", "default"])
def test_what_is_compiled_is_applied(make_site: MakeSite, components: ComponentSet, scheduler: str) -> None:
    site = make_site(services=services(scheduler))
    scheduling = scheduling_of(site)
    assert scheduling is not None
    assert applied(site, components) == [*objects_of(scheduling), profile_object(profile_of(site))]


def test_sections_become_queues(make_site: MakeSite, components: ComponentSet) -> None:
    found = {
        (it["kind"], it["metadata"]["name"]): it for it in applied(make_site(services=services("kueue")), components)
    }
    (group,) = found["ClusterQueue", "research"]["spec"]["resourceGroups"]
    quotas = {it["name"]: it["resources"][0] for it in group["flavors"]}
    assert quotas["gpu"] == {"name": "nvidia.com/gpu", "nominalQuota": "4", "lendingLimit": "2"}
    assert "cpu.of.research" in quotas
    assert found["LocalQueue", "research"]["metadata"]["namespace"] == "vision"


@pytest.mark.parametrize("text", ["", services("hived"), BLOCK])
def test_other_sites_do_not_have_it(make_site: MakeSite, text: str) -> None:
    site = make_site(services=text)
    assert "virtual_clusters" not in {part.addon for part in ADDONS if part.wanted(site)}


def test_every_worker_is_labelled_for_flavors_to_tell_them_apart(make_site: MakeSite, components: ComponentSet) -> None:
    found = labels(make_site(services=services("kueue")), components)
    assert found == {
        "master": None,
        "worker1": {"nvidia.com/gpu.present": "true", "pai-install/sku": "gpu", "pai-install/pinned": ""},
        "worker2": {"pai-install/sku": "cpu", "pai-install/pinned": "research"},
    }


def test_volcano_tells_machines_by_groups_of_its_own(make_site: MakeSite, components: ComponentSet) -> None:
    found = labels(make_site(services=services("volcano")), components)
    assert found["worker2"] == {"pai-install/sku": "cpu", "volcano.sh/nodegroup-name": "own.research"}


def test_absent_machines_have_no_label_of_a_scheduler(make_site: MakeSite, components: ComponentSet) -> None:
    layout = LAYOUT.replace("hostname: worker1,", "hostname: worker1, absent: true,")
    found = labels(
        make_site(layout, services=services("kueue").replace("devices: 4, lend: 2", "devices: 4")), components
    )
    assert found["worker1"] == {"nvidia.com/gpu.present": "true"}
