"""`job submit` on a real API server, over each transport: policies judge jobs in the name of their owner."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pai_install.app.job_submission import compile_unchecked
from pai_install.app.requested_job import JobOptions
from pai_install.cluster.client import ApiError, ClusterClient, Impersonation
from pai_install.jobs.dry_run import without_secrets
from pai_install.jobs.read import read_job
from pai_install.kube.objects import JsonObject
from pai_install.profile.project import profile_of
from pai_install.scheduling.job_kinds import kind_of
from pai_install.scheduling.model import Backend
from pai_install.users.directory import api_user, owner_of
from pai_install.users.model import OWNER, SUBMITTERS
from tests.examples import GROUP, SEARCH, SHORT_SEARCH, names, site_of, takes, text_of
from tests.integration.clients import TRANSPORTS, client_of
from tests.integration.control_plane import Json
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import POD, job, template
from tests.jobs import CASES, compiled

PERSON = "oidc:eve@example.org"
OWN_SECRET = {
    **POD,
    "volumes": [{"name": "key", "secret": {"secretName": "key"}}],
    "imagePullSecrets": [{"name": "key"}],
    "containers": [
        {
            "name": "main",
            "image": "none",
            "volumeMounts": [{"name": "key", "mountPath": "/key"}],
            "envFrom": [{"secretRef": {"name": "key"}}],
            "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "key", "key": "key"}}}],
        }
    ],
}
ATTACKS: dict[str, Json] = {
    "the machine's network": {**POD, "hostNetwork": True},
    "another service account": {**POD, "serviceAccountName": "admin"},
    "a folder of the machine": {**POD, "volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
    "the Secret of another": {**POD, "volumes": [{"name": "key", "secret": {"secretName": "bob.key"}}]},
    "the login of another": {**POD, "imagePullSecrets": [{"name": "other"}]},
    "a privileged container": {
        **POD,
        "containers": [{"name": "main", "image": "none", "securityContext": {"privileged": True}}],
    },
}


@pytest.fixture(scope="module", params=TRANSPORTS)
def client(request: pytest.FixtureRequest, users: Users) -> ClusterClient:
    return client_of(request.param, users.admin)


def submitted(client: ClusterClient, user: str, spec: Json, group: str = SUBMITTERS, owner: str = "") -> str:
    """Why a job is rejected; empty where it is not."""
    it: Any = job("jobs.batch", "train", owner or owner_of(user), template(owner or owner_of(user), deepcopy(spec)))
    try:
        client.dry_run([without_secrets(it, {"key"})], Impersonation(api_user(user), (group,)))
    except ApiError as error:
        return f"{error.reason}: {error.details}"
    return ""


@pytest.mark.parametrize("user", ["alice", "carol", "nobody-yet", "Root_User", PERSON])
@pytest.mark.parametrize("spec", [POD, OWN_SECRET], ids=["plain", "own-secret"])
def test_a_job_in_the_name_of_anybody_passes_and_is_not_created(
    users: Users, client: ClusterClient, user: str, spec: Json
) -> None:
    """Members of the group, users of other groups, and persons that are no users of the cluster."""
    assert submitted(client, user, spec) == ""
    assert users.admin.ask("GET", "/apis/batch/v1/namespaces/vision/jobs")["items"] == []


@pytest.mark.parametrize("user", ["alice", "nobody-yet", PERSON])
@pytest.mark.parametrize("attack", ATTACKS)
def test_policies_reject_it_in_the_name_of_anybody(client: ClusterClient, user: str, attack: str) -> None:
    why = submitted(client, user, ATTACKS[attack])
    assert why.startswith("Invalid: ")
    assert "denied request: " in why


def test_a_job_of_another_owner_is_rejected(client: ClusterClient) -> None:
    assert "denied request: " in submitted(client, "alice", POD, owner="bob")


def test_a_cluster_without_the_binding_says_so(client: ClusterClient) -> None:
    assert " cannot create resource " in submitted(client, "nobody-yet", POD, group="none")


def test_a_secret_that_exists_is_no_companion(users: Users, client: ClusterClient) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "vision"}}
    client.dry_run([secret])
    users.admin.apply(secret)
    with pytest.raises(ApiError) as caught:
        client.dry_run([secret])
    assert caught.value.reason == "AlreadyExists"
    users.admin.ask("DELETE", "/api/v1/namespaces/vision/secrets/theirs")
    assert OWNER not in secret["metadata"]


def dry_run_of(client: ClusterClient, objects: Sequence[JsonObject]) -> int:
    """Asks for all jobs among the objects, and returns their number."""
    secrets = {one["metadata"]["name"] for one in objects if one["kind"] == "Secret"}
    # the kinds of this API server have one version, and no capital letters inside
    jobs = [
        {**one, "apiVersion": one["apiVersion"].partition("/")[0] + "/v1", "kind": one["kind"].capitalize()}
        if "/" in one["apiVersion"]
        else one
        for one in objects
        if kind_of(one)
    ]
    client.dry_run([without_secrets(one, secrets) for one in jobs], Impersonation(api_user("alice"), (SUBMITTERS,)))
    return len(jobs)


@pytest.mark.parametrize("backend", ["kueue", "volcano"])
@pytest.mark.parametrize("case", CASES)
def test_compiled_jobs_pass_the_policies_of_their_owner(client: ClusterClient, case: str, backend: Backend) -> None:
    assert dry_run_of(client, list(YAML(typ="safe").load_all(compiled(case, backend))))


@pytest.mark.parametrize("backend", ["kueue", "volcano"])
def test_all_examples_pass_the_policies_of_their_owner(client: ClusterClient, tmp_path: Path, backend: Backend) -> None:
    for name in names():
        if not takes(name, backend):
            continue
        file = tmp_path / Path(name).name
        file.write_text(text_of(name, *SHORT_SEARCH * (name == SEARCH)))
        request = JobOptions(group=GROUP, user="alice")
        submission, _ = compile_unchecked(profile_of(site_of(backend)), request, read_job(file))
        assert dry_run_of(client, [*(one.item for one in submission.jobs), *submission.companions])
