"""Every route of the console with its meaning at the API server, for test_rights_of_routes.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.jobs.compile.names import TAGS
from pai_install.users.objects import account, administration, membership
from tests.integration.console.test_jobs import FILE
from tests.integration.users.test_rights import job, template

# alice's group has bob, carol is in another one, dora is an administrator. "": nobody
PEOPLE = ("alice", "bob", "carol", "dora", "")
EVERYBODY = frozenset(PEOPLE)
SIGNED_IN, NOBODY, ADMINISTRATORS = EVERYBODY - {""}, frozenset[str](), frozenset({"dora"})
JOB, OLD, KUBERNETES = "/api/v2/jobs/alice~{job}", "/api/v1/user/alice/jobs", "/apis/batch/v1/namespaces/vision/jobs"
USERS, ACCOUNTS = "/api/v2/users", "/api/v1/namespaces/pai-users/serviceaccounts"
TRY, END = "?dryRun=All", "?propagationPolicy=Background&dryRun=All"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings"
TEMPLATES = "/api/v1/namespaces/vision/configmaps"
YAML = "text/yaml"
STARTS = FILE.replace("name: train", "name: {new}")


@dataclass(frozen=True)
class Operation:
    """A request to the console, and its meaning.

    asked: a request to the API server, where changes are dry runs, or the people who may, where no object of the API
    server stands for it. body: a text is a job file. code: of the error that people with the right get. page: of a
    browser. A body is its form.
    """

    method: str
    path: str
    asked: tuple[str, str] | frozenset[str]
    body: Mapping[str, Any] | str | None = None
    change: Mapping[str, Any] | None = None
    code: str = ""
    page: bool = False

    @property
    def words(self) -> str:
        """All texts with names to fill in."""
        return " ".join((self.path, json.dumps(self.body), str(self.asked), json.dumps(self.change)))

    @property
    def changes(self) -> bool:
        """Whether each person needs a job of its own."""
        return self.method != "GET" and "{job}" in self.words


def reading(path: str, asked: tuple[str, str] | frozenset[str], **more: Any) -> Operation:
    return Operation("GET", path, asked, **more)


def seen(path: str, asked: tuple[str, str] | frozenset[str] = SIGNED_IN) -> Operation:
    """A page."""
    return Operation("GET", path, asked, page=True)


def sent(path: str, asked: tuple[str, str] | frozenset[str], body: Mapping[str, str], **more: Any) -> Operation:
    """A form of a page."""
    return Operation("POST", path, asked, body, page=True, **more)


def made(name: str, person: str) -> Mapping[str, Any]:
    """A job as the API server gets it."""
    return job("jobs.batch", name, person, template(person))


READ, STOP, START = ("GET", f"{KUBERNETES}/{{job}}"), {"value": "STOP"}, {"value": "START"}
DELETE, PATCH = ("DELETE", f"{KUBERNETES}/{{job}}{END}"), ("PATCH", f"{KUBERNETES}/{{job}}{TRY}")
NEW_JOB, SEES_USERS = ("POST", f"{KUBERNETES}{TRY}"), ("GET", ACCOUNTS)
LOG = ("GET", "/api/v1/namespaces/vision/pods/{pod}/log")
TARGET, MARKED = (
    ("PATCH", f"{ACCOUNTS}/{{target}}{TRY}"),
    {"metadata": {"annotations": {"pai-install/changed-by": "{person}"}}},
)
JOINS, LEAVES = ("POST", f"{BINDINGS}{TRY}"), ("DELETE", f"{BINDINGS}/{{binding}}{TRY}")
TASK, TAG, NEW = "taskRoles/{role}/taskIndex/0/attempts", {"value": "mine"}, "the password of n"
TAGGED = {"metadata": {"annotations": {TAGS: '{"tags":["mine"]}'}}}
GROUP, CLUSTER, MAIL = {"groupname": "vision"}, "NotImplementedError", {"email": "n@example.org"}
ONE_GROUP = membership("{target}", "vision", "vision")
OPERATIONS: dict[str, Operation] = {
    "health": reading("/healthz", EVERYBODY),
    "info": reading("/api/v2/info", EVERYBODY),
    "old info": reading("/api/v1", EVERYBODY),
    "kind of sign-in": reading("/api/v2/authn/info", EVERYBODY),
    # jobs
    "job": reading(JOB, READ),
    "old address": reading(f"{OLD}/{{job}}", READ),
    "attempt": reading(f"{JOB}/attempts/0", READ),
    "history": reading(f"{JOB}/job-attempts", READ),
    "one of the history": reading(f"{JOB}/job-attempts/0", READ),
    "health of the history": reading(f"{JOB}/job-attempts/healthz", SIGNED_IN),
    "instance": reading(f"{JOB}/attempts/0/{TASK}", READ),
    "addresses of a log": reading(f"{JOB}/attempts/0/{TASK}/0/logs", READ),
    "file": reading(f"{JOB}/config", READ),
    "old file": reading(f"{OLD}/{{job}}/config", READ),
    "ssh": reading(f"{JOB}/ssh", READ, code="NoJobSshInfoError"),
    "old ssh": reading(f"{OLD}/{{job}}/ssh", READ, code="NoJobSshInfoError"),
    "events": reading(f"{JOB}/events", ("GET", "/api/v1/namespaces/vision/events")),
    "jobs": reading("/api/v2/jobs", SIGNED_IN),
    "old jobs": reading("/api/v1/jobs", SIGNED_IN),
    "old jobs of a user": reading(OLD, SIGNED_IN),
    # of the groups that have a virtual cluster here
    "submission": Operation("POST", "/api/v2/jobs", NEW_JOB, STARTS, made("{new}", "{person}")),
    "submission as alice": Operation("POST", OLD, NEW_JOB, STARTS, made("{new}", "alice")),
    "tag": Operation("PUT", f"{JOB}/tag", PATCH, TAG, TAGGED),
    "no tag": Operation("DELETE", f"{JOB}/tag", PATCH, TAG, TAGGED),
    "stop": Operation("PUT", f"{JOB}/executionType", DELETE, STOP),
    "old stop": Operation("PUT", f"{OLD}/{{job}}/executionType", DELETE, STOP),
    "start": Operation("PUT", f"{JOB}/executionType", NEW_JOB, START, made("{new}", "alice"), code="ConflictJobError"),
    # the cluster
    "nodes": reading("/api/v2/kubernetes/nodes", ("GET", "/api/v1/nodes")),
    "pods": reading("/api/v2/kubernetes/pods", ("GET", "/api/v1/pods")),
    "alerts": reading("/api/v2/alerts", SIGNED_IN),
    "load of nodes": reading("/../prometheus/api/v1/query?query=node_uname_info", ADMINISTRATORS, code=CLUSTER),
    "load of nodes over time": reading(
        "/../prometheus/api/v1/query_range?query=node_memory_MemTotal_bytes&start={now}&end={now}&step=1",
        ADMINISTRATORS,
        code=CLUSTER,
    ),
    "virtual clusters": reading("/api/v2/virtual-clusters", SIGNED_IN),
    "old virtual clusters": reading("/api/v1/virtual-clusters", SIGNED_IN),
    "virtual cluster": reading("/api/v2/virtual-clusters/default", SIGNED_IN),
    "old virtual cluster": reading("/api/v1/virtual-clusters/default", SIGNED_IN),
    **{
        f"{method} of a virtual cluster, {version}": Operation(
            method, f"/api/{version}/virtual-clusters/default", ADMINISTRATORS, {}, code=CLUSTER
        )
        for method in ("PUT", "DELETE")
        for version in ("v1", "v2")
    },
    "units": reading("/api/v2/cluster/sku-types", SIGNED_IN),
    "storages": reading("/api/v2/storages", SIGNED_IN),
    "storage": reading("/api/v2/storages/data", ("GET", "/api/v1/namespaces/vision/persistentvolumeclaims/data")),
    # groups are in the files of the site
    "groups": reading("/api/v2/groups", SIGNED_IN),
    "group": reading("/api/v2/groups/vision", SIGNED_IN),
    "new group": Operation("POST", "/api/v2/groups", NOBODY, {"groupname": "new"}),
    "other group": Operation("PUT", "/api/v2/groups", NOBODY, GROUP),
    "other group by its address": Operation("PUT", "/api/v2/groups/vision", NOBODY, {}),
    "no group": Operation("DELETE", "/api/v2/groups/vision", NOBODY),
    "users of a group": reading("/api/v2/groups/vision/userlist", SEES_USERS),
    # users
    **{
        f"{name}{base}": operation
        for base in (USERS, "/api/v2/user", "/api/v1/user")
        for name, operation in {
            "users ": reading(base, SEES_USERS),
            "new user ": Operation(
                "POST",
                base,
                ("POST", f"{ACCOUNTS}{TRY}"),
                {"username": "{new}", "password": NEW, "grouplist": ["vision"]},
                account("{new}"),
            ),
            "other user ": Operation("PUT", base, TARGET, {"data": {"username": "{target}", **MAIL}}, MARKED),
            # a person also sees oneself
            "user ": reading(f"{base}/{{target}}", ("GET", f"{ACCOUNTS}/{{target}}")),
            "no user ": Operation("DELETE", f"{base}/{{target}}", ("DELETE", f"{ACCOUNTS}/{{target}}{TRY}")),
            "virtual clusters of ": Operation("PUT", f"{base}/{{target}}/virtualcluster", NOBODY, {}),
            "password of ": Operation("PUT", f"{base}/{{target}}/password", TARGET, {"newPassword": NEW}, MARKED),
            "address of ": Operation("PUT", f"{base}/{{target}}/email", TARGET, MAIL, MARKED),
            "administrator ": Operation(
                "PUT",
                f"{base}/{{target}}/admin",
                ("POST", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings{TRY}"),
                {"admin": True},
                administration("{target}"),
            ),
        }.items()
    },
    "oneself": Operation("PUT", f"{USERS}/me", frozenset({"alice"}), {"data": {"username": "alice", **MAIL}}),
    "further group": Operation("PUT", f"{USERS}/{{target}}/group", JOINS, GROUP, ONE_GROUP),
    "less group": Operation("DELETE", f"{USERS}/{{target}}/group", LEAVES, GROUP),
    "groups of a user": Operation("PUT", f"{USERS}/{{target}}/grouplist", JOINS, {"grouplist": ["vision"]}, ONE_GROUP),
    # tokens are of their owner, and no objects that anyone reads
    **{
        f"{name}{base}": operation
        for base in ("/api/v2/tokens", "/api/v1/token")
        for name, operation in {
            "tokens ": reading(base, SIGNED_IN),
            "check ": reading(f"{base}/check", SIGNED_IN),
            "new token ": Operation("POST", f"{base}/application", SIGNED_IN),
            "no token ": Operation("DELETE", f"{base}/{{token}}", frozenset({"alice"})),
        }.items()
    },
    # pages
    **{
        f"page {path}": seen(path)
        for path in ("/", "/jobs", "/jobs/new", "/templates", "/templates/new", "/virtual-clusters", "/nodes")
    },
    **{f"page {path}": seen(path) for path in ("/storages", "/account", "/users", "/virtual-clusters/default")},
    "page of a job": seen("/jobs/alice~{job}", READ),
    "page of a log": seen("/jobs/alice~{job}/log/{role}/0", READ),
    "page of a node": seen("/nodes/gpu-1"),
    "page of health": seen("/health", ("GET", "/api/v1/nodes")),
    "page of runs": seen("/runs", ADMINISTRATORS),
    "page of services": seen("/services", ("GET", "/api/v1/pods")),
    "page of a user": seen("/users/{target}", ("GET", f"{ACCOUNTS}/{{target}}")),
    "page of a template": seen("/templates/{template}?group=vision", ("GET", f"{TEMPLATES}/{{map}}")),
    "form that stops": sent("/jobs/alice~{job}/stop", DELETE, {}),
    "form that submits": sent(
        "/jobs/new", NEW_JOB, {"do": "submit", "content": STARTS}, change=made("{new}", "{person}")
    ),
    "form of a new user": sent(
        "/users",
        ("POST", f"{ACCOUNTS}{TRY}"),
        {"username": "{new}", "password": NEW, "group.vision": "on"},
        change=account("{new}"),
    ),
    "form that removes a user": sent(
        "/users/{target}", ("DELETE", f"{ACCOUNTS}/{{target}}{TRY}"), {"do": "remove", "name": "{target}"}
    ),
    "form that removes a template": sent(
        "/templates/{template}?group=vision", ("DELETE", f"{TEMPLATES}/{{map}}{TRY}"), {"do": "remove"}
    ),
    "form of a new template": sent(
        "/templates", frozenset({"alice", "bob"}), {"title": "{new}", "content": FILE, "group": "vision"}
    ),
}
# route -> the test of its rights
ELSEWHERE: Mapping[str, str] = {
    # they prove who a person is
    **dict.fromkeys(
        ("POST /api/v2/authn/basic/login", "DELETE /api/v2/authn/basic/logout", "POST /api/v1/token"),
        "integration/console/test_tokens.py",
    ),
    **dict.fromkeys(
        (
            *("GET /login", "POST /login", "POST /login/token", "POST /logout"),
            *("GET /password/{secret}", "POST /password/{secret}"),
        ),
        "integration/console/test_pages.py",
    ),
    **dict.fromkeys(
        (
            *("GET /api/v2/authn/oidc/login", "GET /api/v1/authn/oidc/login", "GET /api/v2/authn/oidc/return"),
            *("GET /api/v2/authn/oidc/logout", "GET /allow", "POST /allow"),
        ),
        "integration/console/test_oidc.py",
    ),
    # forms about oneself
    **dict.fromkeys(
        ("POST /account/password", "POST /account/tokens", "POST /account/tokens/revoke"),
        "integration/console/test_people_pages.py",
    ),
    # a signed address is read as its caller
    "GET /log-manager/logs": "integration/console/test_rights_of_routes.py",
    "GET /services/{namespace}/{service}": "integration/console/test_system_logs.py",
    "GET /services/{namespace}/log/{pod}": "integration/console/test_system_logs.py",
    "GET /jobs/{name}/changes": "unit/console/pages/test_live.py",
    "GET /jobs/{name}/open": "integration/console/test_web_pages.py",
    # the same for all
    **dict.fromkeys(("GET /console.css", "GET /console.js"), "unit/console/pages/test_layout.py"),
}
