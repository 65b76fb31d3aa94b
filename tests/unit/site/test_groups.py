"""Groups and the namespaces that are theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.site import load_site
from pai_install.site.groups import groups_of, namespace_of, unfit
from tests.unit.site.sites import write_site

# as authentication.py reads it
NAMES = st.from_regex(r"[A-Za-z0-9_]{1,70}", fullmatch=True)
GROUPS = """\
authentication:
  group-manager:
    admin-group: {groupname: admingroup, extension: {acls: {admin: true}}}
    default-group: {groupname: default, extension: {acls: {storageConfigs: [data, data, scans]}}}
    grouplist:
      - {groupname: Team_A}
      - {description: without a name}
      - {groupname: Team_A}
storages:
  - {name: data, type: nfs, server: nas, path: /data}
  - {name: scans, type: nfs, server: nas, path: /scans}
"""


def test_groups_have_namespaces_and_places(tmp_path: Path) -> None:
    found = groups_of(load_site(write_site(tmp_path, services=GROUPS)).site.services)
    assert [(group.name, group.namespace) for group in found] == [
        ("admingroup", "admingroup"),
        ("default", "default"),
        ("Team_A", "team-a"),
    ]
    assert found[1].storages == ("data", "scans"), "each once"
    assert found[2].path == ("authentication", "group-manager", "grouplist", 0)


def test_a_site_without_groups_has_none(tmp_path: Path) -> None:
    assert groups_of(load_site(write_site(tmp_path)).site.services) == ()
    assert groups_of(load_site(write_site(tmp_path, services="authentication: {OIDC: false}\n")).site.services) == ()


@given(NAMES)
def test_a_namespace_is_one_that_kubernetes_takes_or_is_refused(name: str) -> None:
    namespace = namespace_of(name)
    if unfit(namespace):
        assert not namespace or len(namespace) > 63 or namespace.startswith(("kube-", "pai-"))
    else:
        assert namespace.isascii()
        assert namespace[0].isalnum()
        assert namespace[-1].isalnum()
        assert set(namespace) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("_", "has neither a letter nor a digit"),
        ("kube_system", "is a namespace of the system"),
        ("PAI_docker_cache", "is a namespace of the system"),
        ("a" * 64, "has 64 characters, and a namespace 63 at most"),
        ("Team_A", ""),
    ],
)
def test_names_that_cannot_be_namespaces(name: str, why: str) -> None:
    assert unfit(namespace_of(name)) == why
