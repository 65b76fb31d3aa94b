"""What the add-ons of groups and storages are given, and which of it is a secret."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import ADDONS, kernel_modules, make_context, part_named
from pai_install.plan.inventory import build_inventory
from pai_install.plan.redacted_inventory import without_secrets
from pai_install.redact import MASK, Redactor, secret_values
from pai_install.site import Site
from pai_install.users.kinds import kinds_at
from tests.addons import ROOT, addon_action
from tests.unit.plan.conftest import CONFIG

MakeSite = Callable[..., Site]
SERVICES = """\
authentication:
  group-manager:
    default-group: {groupname: default}
    grouplist:
      - {groupname: Vision, extension: {acls: {storageConfigs: [homes, data]}}}
storages:
  - {name: homes, type: smb, server: nas, share-name: homes, username: mounter, password: planted-mount}
  - {name: data, type: nfs, server: nas, path: /data}
registry:
  logins:
    - {registry: harbor.example.com, username: robot, password: planted-pull, groups: [Vision]}
"""


@pytest.fixture
def site(make_site: MakeSite) -> Site:
    return make_site(config=CONFIG, services=SERVICES)


def values(site: Site, components: ComponentSet, name: str) -> dict[str, Any]:
    """What an add-on's templates are filled with."""
    context = make_context(site, components, Path("/s"))
    given = part_named(f"addon.{name}").variables(context, context.leader)
    assert given is not None
    (wanted,) = given.variables()["cluster_addons_wanted"]
    found: dict[str, Any] = wanted["values"]
    return found


def objects(site: Site, components: ComponentSet, name: str) -> dict[str, Any]:
    """kind/name -> the object."""
    found = addon_action().objects_of(ROOT / "addons" / name, values(site, components, name))
    return {f"{it['kind']}/{it['metadata']['name']}": it for it in found}


def test_a_site_without_groups_has_neither(make_site: MakeSite) -> None:
    asked = {part.name for part in ADDONS if part.wanted(make_site(config=CONFIG))}
    assert not asked & {"addon.groups", "addon.storages"}


def test_a_group_has_its_namespace_and_its_logins(site: Site, components: ComponentSet) -> None:
    found = objects(site, components, "groups")
    rights = {name for name in found if "/pai-users" in name} | {"ClusterRole/pai-member", "ClusterRole/pai-admin"}
    each = {"Namespace/vision", "Secret/pai-registries", "ServiceAccount/default", "ResourceQuota/pai-objects"}
    templates = {name for name in found if name.startswith("ConfigMap/template.")}
    shared = {"Namespace/pai-templates", "Role/pai-templates", "RoleBinding/pai-templates"}
    own = {f"MutatingAdmissionPolicy{what}/pai-refused-pods" for what in ("", "Binding")}
    assert set(found) - rights - templates == {*each, *shared, *own, "RoleBinding/pai-submitters"}
    assert "ConfigMap/template.openpai-single" in templates
    text = base64.b64decode(found["Secret/pai-registries"]["data"][".dockerconfigjson"])
    assert json.loads(text)["auths"]["harbor.example.com"] == {"auth": base64.b64encode(b"robot:planted-pull").decode()}


LIMITED = """
jobs: {unqueued: {cores: 16, memory: 64Gi}}
scheduler: {type: kueue}
"""


def test_pods_outside_queues_have_a_limit_in_each_group(make_site: MakeSite, components: ComponentSet) -> None:
    found = objects(make_site(config=CONFIG, services=f"{SERVICES}{LIMITED}"), components, "groups")
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["pai-unqueued"]}
    assert found["ResourceQuota/pai-unqueued"]["spec"] == {
        "hard": {"requests.cpu": "16", "requests.memory": "64Gi"},
        "scopeSelector": {"matchExpressions": [scope]},
    }
    assert found["PriorityClass/pai-unqueued"]["value"] == -1
    rules = found["ValidatingAdmissionPolicy/pai-users-pods"]["spec"]["validations"]
    assert any("pai-unqueued" in rule["messageExpression"] for rule in rules)


@pytest.mark.parametrize(
    ("services", "limited"),
    [
        ("scheduler: {type: kueue}", False),
        ("scheduler: {type: default}", True),
        ("scheduler: {type: hived}", True),
        ("scheduler: {type: default}\njobs: {device-share-percent: 0}", False),
    ],
)
def test_pods_request_what_their_devices_come_with(
    make_site: MakeSite, components: ComponentSet, services: str, *, limited: bool
) -> None:
    found = objects(make_site(config=CONFIG, services=f"{SERVICES}{services}\n"), components, "groups")
    policies = {name: it for name, it in found.items() if name.startswith("ValidatingAdmissionPolicy/")}
    jobs = {name for name in policies if name.endswith(("-pods", ".batch", ".jobset.x-k8s.io", ".kubeflow.org"))}
    rules = {
        name: [rule for rule in it["spec"]["validations"] if "comes with" in rule["messageExpression"]]
        for name, it in policies.items()
    }
    assert {name for name, it in rules.items() if it} == (jobs if limited else set())


def test_a_grant_has_its_volume_claim_and_credentials(site: Site, components: ComponentSet) -> None:
    found = objects(site, components, "storages")
    assert set(found) == {
        "Secret/storage-homes-g1",
        "PersistentVolume/vision-homes-g1",
        "PersistentVolumeClaim/homes",
        "PersistentVolume/vision-data-g1",
        "PersistentVolumeClaim/data",
    }
    held = {key: base64.b64decode(it).decode() for key, it in found["Secret/storage-homes-g1"]["data"].items()}
    assert held == {"username": "mounter", "password": "planted-mount"}


def test_only_secrets_are_masked_and_left_out(site: Site, components: ComponentSet) -> None:
    """A mask over the name of a group would make reports useless."""
    inventory = build_inventory(make_context(site, components, Path("/s")), {})
    mask = Redactor(secret_values(inventory.as_ansible()))
    for word in ("vision", "homes", "default", "mounter", "Secret", "pai-registries"):
        assert mask.text(word) == word
    assert mask.text("planted-mount") == mask.text(base64.b64encode(b"planted-mount").decode()) == MASK
    shown = json.dumps(without_secrets(yaml.safe_load(json.dumps(inventory.as_ansible(), default=str))))
    assert "planted" not in shown
    assert base64.b64encode(b"robot:planted-pull").decode() not in shown


def test_workers_get_what_mounts_and_the_kernel_what_it_needs(site: Site, components: ComponentSet) -> None:
    context = make_context(site, components, Path("/s"))
    given = part_named("storage_client").variables(context, site.workers[0])
    assert given is not None
    assert given.variables()["storage_client_packages"] == ["nfs-common"]
    assert {"nfs", "cifs"} <= set(kernel_modules(site))
    assert not part_named("storage_client").applies(site, site.control_planes[0])
    assert part_named("storage_client").components(site) == {"rsync"}
    services = site.services.model_copy(update={"storages": ()})
    assert not part_named("storage_client").components(site.model_copy(update={"services": services}))


def test_rights_count_in_the_namespaces_of_all_groups_and_for_the_sites_jobs(
    site: Site, components: ComponentSet
) -> None:
    found = objects(site, components, "groups")
    users = "ValidatingAdmissionPolicyBinding/pai-users-"
    everywhere = {f"{users}{name}" for name in ("accounts", "members", "administrators")}
    assert not any("matchResources" in found[name]["spec"] for name in everywhere)
    (within,) = found[f"{users}templates"]["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert within["values"] == ["pai-templates"]
    known = {*everywhere, f"{users}templates"}
    bindings = [it for name, it in found.items() if name.startswith(users) and name not in known]
    kinds = (*kinds_at(None), "pods", "configmaps", "secrets")
    assert len(bindings) == len(kinds), "of a site without another scheduler"
    for binding in bindings:
        (within,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert within["values"] == ["default", "vision"]
    member = [(rule["apiGroups"][0], *rule["resources"]) for rule in found["ClusterRole/pai-member"]["rules"]]
    assert ("", "pods/exec") not in member
    assert not [rule for rule in found["ClusterRole/pai-member"]["rules"] if "*" in rule["verbs"] + rule["resources"]]
    assert found["Namespace/pai-users"]["metadata"]["annotations"] == {"pai-install/removal": "release"}


def test_everything_that_members_create_is_counted(site: Site, components: ComponentSet) -> None:
    found = objects(site, components, "groups")
    created = {
        f"{resource}.{group}" if group else resource
        for rule in found["ClusterRole/pai-member"]["rules"]
        if "create" in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    hard = found["ResourceQuota/pai-objects"]["spec"]["hard"]
    # claims of `ephemeral` volumes are made for members
    assert {name.removeprefix("count/") for name in hard} == created | {"persistentvolumeclaims"}
    # the records of deleted and of present jobs fit beside the ConfigMaps of members
    jobs, kept = int(hard["count/jobs.batch"]), site.services.job_records.keep_per_group
    assert int(hard["count/configmaps"]) > 2 * (jobs + kept)
