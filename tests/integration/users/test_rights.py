"""What a user of a group can do, and cannot: tried with the user's own token, on the API server's own answers."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.scheduling.job_kinds import KINDS
from pai_install.users.model import OWNER
from tests.integration.control_plane import Api, Json
from tests.integration.users.conftest import Users
from tests.waiting import until

POD = {"containers": [{"name": "main", "image": "none"}], "restartPolicy": "Never"}


def template(owner: str, spec: Json = POD) -> Json:
    return {"metadata": {"labels": {OWNER: owner}}, "spec": deepcopy(spec)}


def pod(name: str, owner: str, spec: Json = POD, namespace: str = "vision") -> Json:
    metadata = {"name": name, "namespace": namespace, "labels": {OWNER: owner}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"restartPolicy": "Never", **deepcopy(spec)},
    }


# resource.group -> what its spec is for one pod template
SPECS: dict[str, Callable[[Json], Json]] = {
    "jobs.batch": lambda it: {"template": it},
    "tfjobs.kubeflow.org": lambda it: {"tfReplicaSpecs": {"PS": {"template": it}, "Worker": {"template": it}}},
    "pytorchjobs.kubeflow.org": lambda it: {"pytorchReplicaSpecs": {"Worker": {"template": it}}},
    "xgboostjobs.kubeflow.org": lambda it: {"xgbReplicaSpecs": {"Master": {"template": it}}},
    "paddlejobs.kubeflow.org": lambda it: {"paddleReplicaSpecs": {"Worker": {"template": it}}},
    "jaxjobs.kubeflow.org": lambda it: {"jaxReplicaSpecs": {"Worker": {"template": it}}},
    "mpijobs.kubeflow.org": lambda it: {"mpiReplicaSpecs": {"Launcher": {"template": it}}},
    "jobsets.jobset.x-k8s.io": lambda it: {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": it}}}]},
    "jobs.batch.volcano.sh": lambda it: {"tasks": [{"name": "a", "template": it}]},
}
NAMES = tuple(SPECS)


def job(kind: str, name: str, owner: str, of_pods: Json) -> Json:
    resource, _, group = kind.partition(".")
    metadata = {"name": name, "namespace": "vision", "labels": {OWNER: owner}}
    version = {"apiVersion": f"{group}/v1", "kind": resource[:-1].title()}
    return {**version, "metadata": metadata, "spec": SPECS[kind](of_pods)}


def asked(user: Api, method: str, path: str, body: Json | None = None, how: str = "application/json") -> str:
    """Why it is refused; empty where it is not."""
    try:
        user.ask(method, path, body, how)
    except urllib.error.HTTPError as error:
        return str(json.load(error)["message"])
    return ""


def test_every_kind_of_jobs_is_tried() -> None:
    assert set(NAMES) == {f"{kind.resource}.{kind.group}" for kind in KINDS}


@pytest.mark.parametrize("kind", NAMES)
def test_a_member_makes_sees_changes_and_stops_its_own_jobs_and_no_others(
    users: Users, kind: str, snapshot: SnapshotAssertion
) -> None:
    alice, bob, carol, dora = (users.of[name] for name in ("alice", "bob", "carol", "dora"))
    resource, _, group = kind.partition(".")
    path = f"/apis/{group}/v1/namespaces/vision/{resource}/own"
    # no controller is here that would wait for what a Job made
    ending = f"{path}?propagationPolicy=Background"
    ready(alice, path)
    assert alice.create(job(kind, "own", "alice", template("alice"))) == ""
    change = {"metadata": {"annotations": {"a": "b"}}}
    patch = ("PATCH", path, change, "application/merge-patch+json")
    assert asked(bob, "GET", path) == "", "members of one group see each other's jobs"
    assert asked(bob, *patch) == snapshot
    assert asked(bob, "DELETE", ending) == snapshot
    for method, more in (("GET", ()), ("PATCH", patch[2:]), ("DELETE", ())):
        assert "cannot" in asked(carol, method, path, *more), "another group"
    given = {"metadata": {"labels": {OWNER: "bob"}}}
    assert asked(alice, *patch[:2], given, patch[3]) == snapshot
    assert asked(alice, *patch) == ""
    assert asked(alice, "DELETE", ending) == ""
    gone(users.admin, path)
    assert alice.create(job(kind, "own", "alice", template("alice"))) == ""
    assert "cannot patch" in asked(dora, *patch), "an administrator sees and stops, and changes nothing"
    assert asked(dora, "GET", path) == ""
    assert asked(dora, "DELETE", ending) == "", "an administrator stops the jobs of all"


@pytest.mark.parametrize("kind", NAMES)
def test_a_job_says_whose_it_is_and_so_do_its_pods(users: Users, kind: str, snapshot: SnapshotAssertion) -> None:
    alice = users.of["alice"]
    assert f"label {OWNER}: alice" in alice.create(job(kind, "bobs", "bob", template("alice")))
    assert alice.create(job(kind, "mixed", "alice", template("bob"))) == snapshot
    unlabelled = {"spec": POD}
    assert alice.create(job(kind, "bare", "alice", unlabelled)) == snapshot


@pytest.mark.parametrize("kind", NAMES)
def test_no_job_has_what_is_not_its_groups(users: Users, kind: str, snapshot: SnapshotAssertion) -> None:
    alice = users.of["alice"]
    evil = {**POD, "volumes": [{"name": "a", "hostPath": {"path": "/"}}]}
    assert alice.create(job(kind, "evil", "alice", template("alice", evil))) == snapshot


def container(**values: Any) -> Json:
    return {"containers": [{"name": "main", "image": "none", **values}]}


def volume(**source: Any) -> Json:
    return {**POD, "volumes": [{"name": "a", **source}]}


def variable(**source: Any) -> Json:
    return container(env=[{"name": "A", "valueFrom": source}])


REFUSED = {
    "a folder of the machine": (volume(hostPath={"path": "/srv/speech"}), "volumes of users"),
    "an NFS server": (volume(nfs={"server": "nas", "path": "/speech"}), "volumes of users"),
    "a driver's volume in place": (volume(csi={"driver": "smb.csi.k8s.io"}), "volumes of users"),
    "an iSCSI disk": (
        volume(iscsi={"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}),
        "volumes of users",
    ),
    "the login of a storage": (volume(secret={"secretName": "storage-homes-g1"}), "names begin with alice."),
    "another's Secret": (volume(secret={"secretName": "bob.key"}), "names begin with alice."),
    "a Secret among others": (
        volume(projected={"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "bob.key"}}]}),
        "names begin with alice.",
    ),
    "a Secret's key": (variable(secretKeyRef={"name": "pai-registries", "key": "a"}), "names begin with alice."),
    "a Secret's keys": (container(envFrom=[{"secretRef": {"name": "bob.key"}}]), "names begin with alice."),
    "another's Secret before it begins": (
        {**POD, "initContainers": [{"name": "a", "image": "none", "envFrom": [{"secretRef": {"name": "bob.key"}}]}]},
        "names begin with alice.",
    ),
    "another's login": ({**POD, "imagePullSecrets": [{"name": "bob.key"}]}, "names begin with alice."),
    "the machine's network": ({**POD, "hostNetwork": True}, "no hostNetwork"),
    "the machine's processes": ({**POD, "hostPID": True}, "no hostNetwork"),
    "the machine's memory": ({**POD, "hostIPC": True}, "no hostNetwork"),
    "a port of the machine": (container(ports=[{"containerPort": 80, "hostPort": 80}]), "no hostNetwork"),
    "everything": (container(securityContext={"privileged": True}), "not privileged"),
    "the right to mount": (container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}), "not privileged"),
    "all rights": (container(securityContext={"capabilities": {"add": ["ALL"]}}), "not privileged"),
    "another account": ({**POD, "serviceAccountName": "controller"}, "service account default"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_pod_cannot_have(users: Users, what: str) -> None:
    spec, why = REFUSED[what]
    assert why in users.of["alice"].create(pod("evil", "alice", spec))
    path = "/api/v1/namespaces/vision/pods/evil"
    assert "not found" in asked(users.admin, "GET", path)


GOOD = {
    "a claim, scratch space and settings": {
        **container(envFrom=[{"configMapRef": {"name": "a"}}], ports=[{"containerPort": 80}]),
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "homes"}},
            {"name": "b", "emptyDir": {"medium": "Memory"}},
            {"name": "c", "projected": {"sources": [{"secret": {"name": "alice.key"}}]}},
        ],
    },
    "Secrets of its own": {
        **variable(secretKeyRef={"name": "alice.key", "key": "a"}),
        "volumes": [{"name": "a", "secret": {"secretName": "alice.key"}}],
        "imagePullSecrets": [{"name": "pai-registries"}, {"name": "alice.pull"}],
    },
    "locked memory for RDMA": container(securityContext={"capabilities": {"add": ["IPC_LOCK"]}, "privileged": False}),
}


@pytest.mark.parametrize("what", GOOD)
def test_a_pod_may_have(users: Users, what: str) -> None:
    alice, path = users.of["alice"], "/api/v1/namespaces/vision/pods/good"
    assert alice.create(pod("good", "alice", GOOD[what])) == ""
    assert asked(alice, "DELETE", f"{path}?gracePeriodSeconds=0") == ""


def test_pods_are_seen_by_their_group_and_stopped_by_their_owner(users: Users, snapshot: SnapshotAssertion) -> None:
    alice, path = users.of["alice"], "/api/v1/namespaces/vision/pods/own"
    assert alice.create(pod("own", "alice")) == ""
    assert asked(users.of["bob"], "DELETE", path) == snapshot
    for user in ("alice", "bob"):
        assert 'cannot create resource "pods/exec"' in asked(users.of[user], "POST", f"{path}/exec?command=sh&stdin=1")
        assert "cannot patch" in asked(users.of[user], "PATCH", path, {}, "application/merge-patch+json")
    for verb in ("GET", "DELETE"):
        assert "cannot" in asked(users.of["carol"], verb, path)
    assert "cannot list" in asked(users.of["carol"], "GET", "/api/v1/namespaces/vision/pods")
    assert "cannot list" in asked(users.of["carol"], "GET", "/api/v1/pods")
    assert "cannot create" in users.of["carol"].create(pod("intruder", "carol"))
    assert asked(users.of["dora"], "GET", "/api/v1/pods") == ""
    assert asked(users.of["dora"], "DELETE", f"{path}?gracePeriodSeconds=0") == ""


def test_an_administrator_among_users_is_not_root_of_the_machines(users: Users) -> None:
    dora, root = users.of["dora"], volume(hostPath={"path": "/"})
    assert "volumes of users" in dora.create(pod("root", "dora", root, "speech"))
    assert "cannot create" in dora.create(pod("root", "dora", root, "kube-system"))
    assert "cannot list" in asked(dora, "GET", "/api/v1/secrets")


def test_secrets_are_made_and_never_read(users: Users, snapshot: SnapshotAssertion) -> None:
    alice, place = users.of["alice"], "/api/v1/namespaces/vision/secrets"
    own = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "alice.key", "namespace": "vision"}}
    other = {**own, "metadata": {"name": "bob.key", "namespace": "vision"}}
    assert users.of["bob"].create(other) == ""
    assert alice.create(own) == ""
    assert "begins with alice." in alice.create(other)
    assert "begins with alice." in alice.create({**own, "metadata": {"name": "alice-key", "namespace": "vision"}})
    assert "begins with alice." in asked(alice, "DELETE", f"{place}/bob.key")
    for path in (place, f"{place}/alice.key", f"{place}/bob.key"):
        assert "cannot" in asked(alice, "GET", path)
    marked = {"name": "alice.token", "namespace": "vision", "annotations": {"kubernetes.io/service-account.name": "x"}}
    token = {**own, "metadata": marked, "type": "kubernetes.io/service-account-token"}
    assert alice.create(token) == snapshot
    for name, user in (("alice.key", alice), ("bob.key", users.of["bob"])):
        assert asked(user, "DELETE", f"{place}/{name}") == ""


def test_config_maps_belong_to_who_made_them(users: Users, snapshot: SnapshotAssertion) -> None:
    alice, path = users.of["alice"], "/api/v1/namespaces/vision/configmaps/script"
    metadata = {"name": "script", "namespace": "vision"}
    script = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
    assert f"label {OWNER}: alice" in alice.create(script)
    assert alice.create({**script, "metadata": {**metadata, "labels": {OWNER: "alice"}}}) == ""
    assert asked(users.of["bob"], "DELETE", path) == snapshot
    assert asked(alice, "DELETE", path) == ""
    system = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": "vision"}}
    users.admin.apply({**system, "data": {"ca.crt": "x"}})
    assert asked(alice, "DELETE", "/api/v1/namespaces/vision/configmaps/kube-root-ca.crt") == snapshot


def test_users_give_themselves_nothing(users: Users) -> None:
    alice = users.of["alice"]
    subject = {"kind": "ServiceAccount", "name": "alice", "namespace": "pai-users"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    version = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    metadata = {"name": "more", "namespace": "vision"}
    assert "cannot create" in alice.create({**version, "metadata": metadata, "roleRef": role, "subjects": [subject]})
    token = "/api/v1/namespaces/pai-users/serviceaccounts/bob/token"
    assert "cannot create" in asked(
        alice, "POST", token, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    )
    for path in (
        "/api/v1/namespaces/pai-users/secrets",
        "/api/v1/namespaces/pai-users/serviceaccounts",
        "/api/v1/nodes",
    ):
        assert "cannot list" in asked(alice, "GET", path)


def test_who_is_no_user_is_not_looked_at(users: Users) -> None:
    """Controllers, and the administrator by whom pai-install acts."""
    assert users.admin.create(pod("system", "anybody", volume(hostPath={"path": "/"}))) == ""
    assert asked(users.admin, "DELETE", "/api/v1/namespaces/vision/pods/system?gracePeriodSeconds=0") == ""


def test_a_kubeconfig_ends_with_its_mark_and_a_user_with_its_account(users: Users) -> None:
    bob, place = users.of["bob"], "/api/v1/namespaces/vision/pods"
    assert asked(bob, "GET", place) == ""
    users.admin.ask("DELETE", "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings/pai-user-bob")
    until(lambda: "cannot list" in asked(bob, "GET", place))
    carol, theirs = users.of["carol"], "/api/v1/namespaces/speech/pods"
    assert asked(carol, "GET", theirs) == ""
    users.admin.ask("DELETE", "/api/v1/namespaces/pai-users/secrets/bob.1")
    users.admin.ask("DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/carol")
    # the API server remembers a token for ten seconds
    until(lambda: asked(bob, "GET", place) == "Unauthorized")
    until(lambda: asked(carol, "GET", theirs) == "Unauthorized")


def ready(user: Api, path: str) -> None:
    """Returns once the API server serves the kind."""
    until(lambda: "could not find the requested resource" not in asked(user, "GET", path))


def gone(user: Api, path: str) -> None:
    until(lambda: "not found" in asked(user, "GET", path))
