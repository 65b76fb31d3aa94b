"""Whose tokens the API servers of a site take: from the site's files to the file that they read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import make_context, part_named
from pai_install.plan.inventory import build_inventory
from pai_install.site import Site
from pai_install.users.model import SUBMITTERS
from tests.addons import ROOT, addon_action
from tests.ansible_path import filter_plugin
from tests.internet.authority import Authority
from tests.unit.plan.conftest import CONFIG

MakeSite = Callable[..., Site]
GOLDEN = ROOT / "tests" / "golden" / "control_plane"
ANONYMOUS = (ROOT / "roles" / "control_plane" / "files" / "authentication.yaml").read_text().rstrip("\n")
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
GROUPS = """\
  group-manager:
    admin-group: {groupname: admins, externalName: pai-admins, extension: {acls: {admin: true}}}
    default-group: {groupname: default}
    grouplist:
      - {groupname: Vision_A, externalName: Vision Team}
      - {groupname: speech}
"""
SITES = {
    "nobody": "authentication:\n",
    "issuer": "authentication:\n  OIDC: true\n  issuer: {url: https://sso.example.org/realms/lab/, client-id: pai, "
    "username-claim: email, groups-claim: roles}\n",
    "azure": "authentication:\n  OIDC: true\n  OIDC-type: AAD\n"
    f"  AAD: {{tenantID: {TENANT}, clientID: pai, clientSecret: planted-secret}}\n",
}


def jwt(site: Site, components: ComponentSet) -> Any:
    """What the role is given."""
    inventory = build_inventory(make_context(site, components, Path("/s")), {})
    return inventory.host_vars["master"].get("control_plane_jwt", inventory.shared_vars.get("control_plane_jwt"))


@pytest.mark.parametrize("case", SITES)
def test_what_api_servers_read(make_site: MakeSite, components: ComponentSet, case: str) -> None:
    given = jwt(make_site(config=CONFIG, services=SITES[case] + GROUPS), components)
    written = filter_plugin("pai_kubeadm").authentication_config(ANONYMOUS, given)
    assert written == (GOLDEN / f"authentication-{case}.yaml").read_text()
    assert "planted" not in written
    read = yaml.safe_load(written)
    assert read.get("jwt", []) == list(given)
    assert read["anonymous"] == yaml.safe_load(ANONYMOUS)["anonymous"], "who logs in changes nothing for the others"


def test_an_authority_of_the_sites_own_goes_along(
    make_site: MakeSite, components: ComponentSet, tmp_path: Path
) -> None:
    file = tmp_path / "sso.pem"
    file.write_text(Authority("sso", tmp_path).pem)
    text = SITES["issuer"].replace("client-id: pai", f"client-id: pai, ca-file: {file}")
    (given,) = jwt(make_site(config=CONFIG, services=text + GROUPS), components)
    assert given["issuer"]["certificateAuthority"] == file.read_text()
    read = yaml.safe_load(filter_plugin("pai_kubeadm").authentication_config(ANONYMOUS, [given]))
    assert read["jwt"] == [given]


def test_another_address_of_the_issuer_is_another_setting(make_site: MakeSite, components: ComponentSet) -> None:
    """Where a program is fetched from is none; this address is what the API server believes."""
    digests = set()
    for host in ("sso", "login"):
        site = make_site(config=CONFIG, services=SITES["issuer"].replace("sso.", f"{host}.") + GROUPS)
        inventory = build_inventory(make_context(site, components, Path("/s")), {})
        digests.add(inventory.settings_of("master")["control_plane"]["control_plane_jwt"])
    assert len(digests) == 2


@pytest.mark.parametrize("case", SITES)
def test_groups_that_name_one_of_the_directory(make_site: MakeSite, components: ComponentSet, case: str) -> None:
    context = make_context(make_site(config=CONFIG, services=SITES[case] + GROUPS), components, Path("/s"))
    variables = part_named("addon.groups").variables(context, context.leader)
    assert variables is not None
    (wanted,) = variables.variables()["cluster_addons_wanted"]
    made = addon_action().objects_of(ROOT / "addons" / "groups", wanted["values"])
    found = {
        (one["kind"], one["metadata"].get("namespace"), one["subjects"][0]["name"]): one["roleRef"]["name"]
        for one in made
        if one["kind"].endswith("Binding") and "subjects" in one and one["subjects"][0]["name"] != SUBMITTERS
    }
    bound = {
        ("RoleBinding", "admins", "oidc:pai-admins"): "pai-member",
        ("ClusterRoleBinding", None, "oidc:pai-admins"): "pai-admin",
        ("RoleBinding", "vision-a", "oidc:Vision Team"): "pai-member",
    }
    shared = next(one for one in made if one["kind"] == "RoleBinding" and one["metadata"]["name"] == "pai-templates")
    readers = {one["name"] for one in shared["subjects"]} - {SUBMITTERS}
    everyone = ("RoleBinding", "pai-templates", "system:serviceaccounts:pai-users")
    assert found.pop(everyone) == "pai-templates"
    assert found == ({} if case == "nobody" else bound)
    theirs = {name for _, _, name in bound} if case != "nobody" else set()
    assert readers == {"system:serviceaccounts:pai-users", *theirs}
