"""The pod that takes code to a storage, on a real API server: members may create it, with every scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pai_install.jobs.code import StoredCode
from pai_install.jobs.code_pod import owned, upload_pod
from pai_install.jobs.place import Claim
from pai_install.users.model import OWNER
from tests.integration.control_plane import Json
from tests.integration.users.tenants import Tenants, refused, tenants
from tests.unit.jobs.examples import somewhere

__all__ = ["tenants"]

PODS = "/api/v1/namespaces/vision/pods"


def upload(tenants: Tenants, owner: str = "alice", port: int = 0) -> Json:
    place = somewhere(tenants.backend)
    place = replace(place, owner=replace(place.owner, user=owner), claims={"data": Claim("data", "alice")})
    used = [f"{number:064x}" for number in range(800)]
    pod: Mapping[str, Any] = upload_pod(StoredCode("a" * 64, "data", 1, 1), place, "1", "image", 30, used, port)
    return dict(owned(pod))


@pytest.mark.parametrize("port", [0, 8022])
def test_its_owner_may_create_it(tenants: Tenants, port: int) -> None:
    """By itself in the console, and as job submit checks it."""
    assert tenants.of["alice"].refusal("POST", f"{PODS}?dryRun=All", upload(tenants, port=port)) == ""


def test_it_is_bound_by_the_policies(tenants: Tenants) -> None:
    """The check of job submit would see a node's folder, another owner, or devices of another class."""
    alice = tenants.of["alice"]
    assert refused(alice.refusal("POST", f"{PODS}?dryRun=All", upload(tenants, "bob")))
    folder = upload(tenants)
    folder["spec"] = {**folder["spec"], "volumes": [{"name": "code", "hostPath": {"path": "/"}}]}
    assert refused(alice.refusal("POST", f"{PODS}?dryRun=All", folder))
    above = upload(tenants)
    above["spec"] = {**above["spec"], "priorityClassName": "site-services"}
    assert refused(alice.refusal("POST", f"{PODS}?dryRun=All", above))


def test_what_is_created_is_no_job(tenants: Tenants) -> None:
    made = upload(tenants)
    labels = {name: word for name, word in made["metadata"]["labels"].items() if name != OWNER}
    made["metadata"] = {**made["metadata"], "labels": labels}
    assert tenants.admin.create(made) == ""
    try:
        (found,) = tenants.admin.ask("GET", f"{PODS}?labelSelector=pai-install/code-upload%3Dalice")["items"]
        assert OWNER not in found["metadata"]["labels"]
    finally:
        tenants.admin.ask("DELETE", f"{PODS}/code-1?gracePeriodSeconds=0")
