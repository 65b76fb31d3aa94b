"""Plugins of Volcano's jobs: the controllers have the objects of jobs in namespaces of groups, and no others."""

from __future__ import annotations

import pytest

from pai_install.users.job_secrets import ACCOUNT, NAMESPACE, job_secrets
from tests.integration.control_plane import Api, Json
from tests.integration.shared_control_plane import wait_for_policies, wait_for_rights
from tests.integration.users.conftest import NAMESPACES, Users
from tests.integration.users.test_rights import asked

OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "mpi", "uid": "1", "controller": True}


# from the add-on volcano
RULES = [{"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": ["get", "create", "update", "delete"]}]
RBAC = "rbac.authorization.k8s.io"
OTHER_RIGHTS: list[Json] = [
    {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": RULES},
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    },
]


@pytest.fixture(scope="module")
def controllers(users: Users) -> Api:
    """The API server, asked by Volcano's controllers; returns once the policies count."""
    users.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    account = {"name": ACCOUNT, "namespace": NAMESPACE}
    users.admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    for one in (*job_secrets("volcano", NAMESPACES), *OTHER_RIGHTS):
        users.admin.apply(one)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    found = users.admin.as_(users.admin.ask("POST", path, request)["status"]["token"])
    wait_for_policies(users.admin)
    wait_for_rights(users.admin)
    return found


def secrets(namespace: str = "vision", name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/secrets" + (f"/{name}" if name else "")


def secret(name: str, *owners: Json, namespace: str = "vision") -> Json:
    metadata = {"name": name, "namespace": namespace, "ownerReferences": list(owners)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"config": "x"}}


def test_secret_of_a_job_is_made_read_changed_and_deleted(controllers: Api) -> None:
    assert asked(controllers, "POST", secrets(), secret("mpi-ssh", OWNER)) == ""
    found = controllers.ask("GET", secrets(name="mpi-ssh"))
    assert asked(controllers, "PUT", secrets(name="mpi-ssh"), {**found, "data": {}}) == ""
    assert asked(controllers, "DELETE", secrets(name="mpi-ssh")) == ""


def test_secrets_of_others_stay(users: Users, controllers: Api) -> None:
    """A job alice.key would overwrite and delete a Secret alice.key-ssh."""
    alice = users.of["alice"]
    assert asked(alice, "POST", secrets(), secret("alice.key-ssh")) == ""
    found = controllers.ask("GET", secrets(name="alice.key-ssh"))
    assert "ValidatingAdmissionPolicy" in asked(controllers, "PUT", secrets(name="alice.key-ssh"), found)
    assert "ValidatingAdmissionPolicy" in asked(controllers, "DELETE", secrets(name="alice.key-ssh"))


@pytest.mark.parametrize("namespace", ["default", "kube-system", NAMESPACE])
def test_there_is_no_right_elsewhere(controllers: Api, namespace: str) -> None:
    assert "forbidden" in asked(controllers, "POST", secrets(namespace), secret("mpi-ssh", OWNER, namespace=namespace))
    assert "forbidden" in asked(controllers, "GET", secrets(namespace))


@pytest.mark.parametrize(("kind", "name"), [("ConfigMap", "train-svc"), ("Service", "train-worker-0")])
def test_no_job_has_the_object_of_a_colleague(users: Users, controllers: Api, kind: str, name: str) -> None:
    """The plugin svc of a job overwrites a ConfigMap NAME-svc, and deletes it and a Service NAME with the job."""
    path = f"/api/v1/namespaces/vision/{kind.lower()}s"
    spec = {"spec": {"ports": [{"port": 80}]}} if kind == "Service" else {}
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "vision"}, **spec}
    users.admin.apply(made)
    found = controllers.ask("GET", f"{path}/{name}")
    for method, body in (("PUT", found), ("DELETE", None)):
        assert "ValidatingAdmissionPolicy" in asked(controllers, method, f"{path}/{name}", body)
    of_job = {**made, "metadata": {"name": "mpi-svc", "namespace": "vision", "ownerReferences": [OWNER]}}
    assert asked(controllers, "POST", path, of_job) == ""
    assert asked(controllers, "DELETE", f"{path}/mpi-svc") == ""
