"""Accounts of groups at private registries -> what their pods pull with, and machines do not."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from pai_install.registry.compile import registries_of
from pai_install.registry.model import Login
from pai_install.registry.pull_secrets import accounts, pull_secrets
from pai_install.site import load_site
from tests.unit.site.sites import write_site

SERVICES = """\
registry:
  logins:
    - {registry: harbor.example.com, username: all, password: pl4nted-1}
    - {registry: harbor.example.com, username: vision, password: pl4nted-2, groups: [Vision]}
    - {registry: docker.io, username: both, password: pl4nted-3, groups: [Vision, speech]}
authentication:
  group-manager: {grouplist: [{groupname: Vision}, {groupname: speech}, {groupname: third}]}
"""
NAMESPACES = {"Vision": "vision", "speech": "speech", "third": "third"}


def logins(folder: Path) -> tuple[Login, ...]:
    return registries_of(load_site(write_site(folder, services=SERVICES)).site).logins


def test_each_group_has_its_own_accounts_in_one_secret(tmp_path: Path) -> None:
    found = {it["metadata"]["namespace"]: it for it in pull_secrets(logins(tmp_path), NAMESPACES)}
    assert set(found) == {"vision", "speech"}
    auths = json.loads(found["vision"]["secret_data"][".dockerconfigjson"])["auths"]
    users = {registry: base64.b64decode(it["auth"]).decode() for registry, it in auths.items()}
    assert users == {"harbor.example.com": "vision:pl4nted-2", "https://index.docker.io/v1/": "both:pl4nted-3"}


def test_pods_name_it_by_the_account_that_they_have_anyway(tmp_path: Path) -> None:
    found = list(accounts(logins(tmp_path), NAMESPACES))
    assert [(it["metadata"]["namespace"], it["metadata"]["name"]) for it in found] == [
        ("vision", "default"),
        ("speech", "default"),
    ]
    assert all(it["imagePullSecrets"] == [{"name": "pai-registries"}] for it in found)


def test_machines_pull_with_the_others_alone(tmp_path: Path) -> None:
    site = load_site(write_site(tmp_path, services=SERVICES)).site
    assert [login.username for login in registries_of(site).of_machines] == ["all"]


def test_without_such_accounts_there_is_nothing() -> None:
    assert list(pull_secrets((), NAMESPACES)) == list(accounts((), NAMESPACES)) == []
