"""A control plane without machines, with the objects of the add-on groups and four users."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from pai_install.scheduling.job_kinds import KINDS
from pai_install.users.administration import administration_policies
from pai_install.users.objects import account, administration, mark, membership
from pai_install.users.policies import policies
from pai_install.users.rights import roles, submitter_bindings
from pai_install.users.template_rights import template_rights
from tests.addons import ROOT, addon_action
from tests.integration.control_plane import Api, Json
from tests.integration.shared_control_plane import ControlPlane, wait_for_policies, wait_for_rights

__all__ = ["Users", "users"]

NAMESPACES = ("vision", "speech")
# user -> namespaces of its groups
MEMBERS = {"alice": ("vision",), "bob": ("vision",), "carol": ("speech",), "dora": ("speech",)}
ADMIN = "dora"


@dataclass(frozen=True)
class Users:
    """The administrator of the cluster, and each user."""

    admin: Api
    of: Mapping[str, Api]
    tokens: Mapping[str, Json]


@pytest.fixture(scope="module")
def users(control_plane: ControlPlane) -> Users:
    """Everybody with a token, and nothing but what `everybody` has made."""
    return control_plane.prepared("users", everybody)


def everybody(api: Api) -> Users:
    """Returns once all policies count."""
    for namespace in NAMESPACES:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for definition in definitions():
        api.apply(definition)
    apply_rights(api)
    tokens = {name: joined(api, name, places) for name, places in MEMBERS.items()}
    of = {name: api.as_(token["status"]["token"]) for name, token in tokens.items()}
    everything_counts(api, of["alice"])
    # those that were applied last are read later than the others
    wait_for_policies(api)
    wait_for_rights(api)
    return Users(api, of, tokens)


def apply_rights(api: Api) -> None:
    """What the add-on makes of the site's groups; roles and policies of all schedulers at once."""
    found: dict[str, Any] = {}
    for scheduler in ("kueue", "volcano"):
        rights = [
            *roles(scheduler),
            *policies(scheduler, NAMESPACES),
            *administration_policies({name: name for name in (*NAMESPACES, "ops")}),
        ]
        found |= {f"{one['kind']} {one['metadata']['name']}": merged(found, one) for one in rights}
    values = {
        "namespaces": [],
        "credentials": [],
        "accounts": [],
        "rights": [*found.values(), *submitter_bindings(NAMESPACES), *template_rights(())],
        "policies": [],
        "templates": [],
        "quotas": [],
    }
    for entry in addon_action().objects_of(ROOT / "addons/groups", values, ()):
        api.apply(entry)


def merged(found: Mapping[str, Json], one: Json) -> Json:
    """A role with the rules of both."""
    before = found.get(f"{one['kind']} {one['metadata']['name']}")
    return {**one, "rules": [*before["rules"], *one["rules"]]} if before and "rules" in one else one


def joined(api: Api, name: str, places: tuple[str, ...]) -> Json:
    """Makes the user as `user add` and `user kubeconfig` do; the answer to the request for its token."""
    uid = api.apply(account(name))["metadata"]["uid"]
    for place in places:
        api.apply(membership(name, place, place))
    if name == ADMIN:
        api.apply(administration(name))
    bound = api.apply(mark(name, uid, f"{name}.1"))["metadata"]
    reference = {"apiVersion": "v1", "kind": "Secret", "name": bound["name"], "uid": bound["uid"]}
    spec = {"expirationSeconds": 24 * 3600, "boundObjectRef": reference}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return api.ask("POST", f"/api/v1/namespaces/pai-users/serviceaccounts/{name}/token", body)


def definitions() -> Iterator[Json]:
    """The kinds that no API server has by itself, with any content."""
    plain = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for kind in KINDS:
        if kind.group == "batch":
            continue
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{kind.resource}.{kind.group}",
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": kind.group,
                "scope": "Namespaced",
                "names": {"plural": kind.resource, "singular": kind.resource[:-1], "kind": kind.resource[:-1].title()},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": plain}},
                ],
            },
        }


def everything_counts(api: Api, user: Api) -> None:
    """Returns once each policy was seen to refuse something."""
    bare = {"apiVersion": "v1", "metadata": {"name": "probe", "namespace": "vision"}}
    end, left = time.monotonic() + 60, {"ConfigMap", "Secret", "Pod"}
    while left:
        for kind in tuple(left):
            spec = {"spec": {"containers": [{"name": "main", "image": "none"}]}} if kind == "Pod" else {}
            why = user.create({**bare, "kind": kind, **spec})
            if "ValidatingAdmissionPolicy" in why:
                left.remove(kind)
            elif not why:
                api.ask("DELETE", f"/api/v1/namespaces/vision/{kind.lower()}s/probe?gracePeriodSeconds=0")
        assert time.monotonic() < end, f"no policy counts for {left}"
        time.sleep(0.5)
