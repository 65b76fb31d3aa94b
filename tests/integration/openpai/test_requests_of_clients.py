"""Requests as OpenPAI's clients write them: what a client reads of each answer is there.

The clients themselves are no part of this repository. docs/console.md names them.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from tests.integration.browser.machine import kubelet, start_job
from tests.integration.openpai.conftest import Console, console, quickstart
from tests.waiting import until

__all__ = ["console", "quickstart"]
# the body of each request of the Python SDK without another one
NOTHING: dict[str, Any] = {}
RUNS = "runs-here"
OPAI_JOB = {
    "protocolVersion": 2,
    "name": "commands",
    "type": "job",
    "prerequisites": [{"name": "docker_image", "type": "dockerimage", "protocolVersion": "2", "uri": "python:3.12"}],
    "parameters": {"cluster_alias": "here", "python_path": "python", "work_directory": "/sdk/alice/jobs/commands"},
    "secrets": {"clusters": '[{"user": "alice", "password": "planted-password"}]'},
    "taskRoles": {
        "main": {
            "dockerImage": "docker_image",
            "resourcePerInstance": {"cpu": 2, "gpu": 0, "memoryMB": 4096},
            "commands": ["python -V"],
        }
    },
    "deployments": [
        {
            "name": "sdk_deployment",
            "taskRoles": {
                "main": {
                    "preCommands": [
                        "<% $parameters.python_path %> -m pip install jupyter",
                        "echo <% $secrets.clusters %> > clusters.yaml",
                    ]
                }
            },
        }
    ],
    "defaults": {"deployment": "sdk_deployment"},
    "extras": {"sdk.plugins": [], "tags": ["py-sdk", "py-sdk-one-liner"]},
}
# what the extension writes into a new file, with its only plugin
VSCODE_JOB: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "new_job",
    "type": "job",
    "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "aiplatform/pai.build.base"}],
    "taskRoles": {
        "train": {
            "instances": 1,
            "dockerImage": "image",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 16384, "gpu": 1},
            "commands": ["python train.py"],
        }
    },
    "extras": {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "parameters": {"jobssh": True}}]},
}
FORM = "application/x-www-form-urlencoded"
V1_JOB = {
    "jobName": "old-file",
    "image": "python:3.12",
    "virtualCluster": "default",
    "taskRoles": [{"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 1024, "command": "python -V"}],
}


@pytest.fixture(scope="module")
def alice(console: Console) -> str:
    """A token as the Python SDK gets it."""
    body = {"username": "alice", "password": console.password("alice"), "expiration": 3600}
    return str(answered(console, "POST", "/api/v1/token", body=body)["token"])


@pytest.fixture(scope="module")
def bob(console: Console) -> str:
    """A token as the extension of VS Code gets it before each submission."""
    body = urlencode({"username": "bob", "password": console.password("bob"), "expiration": 4000})
    return str(answered(console, "POST", "/api/v1/token", body=body, kind=FORM)["token"])


@pytest.fixture(scope="module")
def root(console: Console) -> str:
    """A token of an administrator, as the form of the portal gets it."""
    body = {"username": "root", "password": console.password("root"), "expiration": 7 * 24 * 3600}
    found = answered(console, "POST", "/api/v2/authn/basic/login", body=body)
    assert (found["user"], found["admin"], found["hasGitHubPAT"]) == ("root", True, False)
    return str(found["token"])


@pytest.fixture(scope="module")
def form_job(console: Console, alice: str) -> None:
    """A job of the portal's form."""
    text = yaml.dump({**VSCODE_JOB, "name": "from-form", "extras": {"submitFrom": "submit-job-v2"}})
    answered(console, "POST", "/api/v2/jobs", alice, text, "text/yaml", 202)
    answered(console, "GET", "/api/v2/jobs/alice~from-form", alice)
    is_listed(console, alice, "from-form")


def is_listed(console: Console, token: str, name: str) -> None:
    """Waits until lists have a new job. The console's promise is two seconds, which other tests measure."""
    until(lambda: name in {one["name"] for one in answered(console, "GET", "/api/v2/jobs", token)}, 60)


def answered(
    console: Console, method: str, path: str, token: str = "", body: Any = None, kind: str = "", status: int = 200
) -> Any:
    """The content of an answer with this status."""
    found, text = console.ask(method, path, token, body, kind)
    assert found == status, (method, path, found, text)
    return json.loads(text)


class TestOpai:
    """OpenPAI's Python SDK 0.4.0."""

    def test_it_adds_a_cluster(self, console: Console, alice: str) -> None:
        assert answered(console, "GET", "/api/v1", body=NOTHING)["authnMethod"] == "basic"
        found = answered(console, "GET", "/api/v1/user/alice", alice, NOTHING)["virtualCluster"]
        assert "default" in (found.split(",") if isinstance(found, str) else found)

    def test_it_counts_what_is_free(self, console: Console, alice: str) -> None:
        (cluster,) = answered(console, "GET", "/api/v1/virtual-clusters", alice, NOTHING).values()
        total, used = cluster["resourcesTotal"], cluster["resourcesUsed"]
        assert set(total) >= {"GPUs", "memory", "vCores"}
        assert all(int(total[name] - used[name]) >= 0 for name in total)

    def test_it_submits_commands_with_its_own_password(self, console: Console, alice: str) -> None:
        text = yaml.dump(OPAI_JOB)
        answer = answered(console, "POST", "/api/v2/jobs", alice, text, "text/yaml", 202)
        assert "extras.sdk.plugins" in answer["message"]
        status, kept = console.ask("GET", "/api/v2/jobs/alice~commands/config", alice)
        assert (status, "planted-password" in kept, "******" in kept) == (200, False, True)
        secrets = console.admin.ask("GET", "/api/v1/namespaces/team/secrets")["items"]
        (secret,) = [one for one in secrets if one["metadata"]["name"].startswith("alice.")]
        assert [one["kind"] for one in secret["metadata"]["ownerReferences"]] == ["JobSet"]

    def test_it_submits_a_file_of_protocol_1(self, console: Console, alice: str) -> None:
        answered(console, "POST", "/api/v1/user/alice/jobs", alice, V1_JOB, status=202)
        stop = "/api/v1/user/alice/jobs/old-file/executionType"
        answered(console, "PUT", stop, alice, {"value": "STOP"}, status=202)

    @pytest.mark.parametrize("path", ["", "/old-file", "/old-file/config", "/old-file/ssh"])
    def test_it_reads_jobs_without_a_token_and_learns_why_not(self, console: Console, path: str) -> None:
        found = answered(console, "GET", f"/api/v1/user/alice/jobs{path}", body=NOTHING, status=401)
        assert set(found) == {"code", "message"}


class TestVscode:
    """The extension 0.3.2 of VS Code, with the JavaScript SDK 0.1.5 inside."""

    def test_it_adds_a_host(self, console: Console) -> None:
        assert console.ask("GET", "/healthz")[0] == 200
        found = answered(console, "GET", "/api/v2/jobs/protocolversion/config", status=401)
        assert found["code"] != "NoApiError", "it would write jobs of protocol 1"
        empty = {"username": "", "password": ""}
        assert "code" in answered(console, "POST", "/api/v2/authn/basic/login", body=empty, status=400)
        assert answered(console, "GET", "/api/v2/info")["authnMethod"] == "basic"

    def test_it_submits_and_lists(self, console: Console, bob: str) -> None:
        old = "/api/v1/user/bob/jobs/new_job"
        assert answered(console, "GET", old, bob, status=404)["code"] == "NoJobError"
        answered(console, "POST", "/api/v2/jobs", bob, yaml.safe_dump(VSCODE_JOB), "text/yaml", 202)
        assert answered(console, "GET", old, bob)["name"] == "new_job"
        job = answered(console, "GET", "/api/v2/jobs/bob~new_job", bob)
        assert job["jobStatus"]["state"] == "WAITING", "a remote job is waited for by this word"
        is_listed(console, bob, "new_job")
        for path in ("/api/v2/jobs", "/api/v1/jobs"):
            (listed,) = (one for one in answered(console, "GET", path, bob) if one["username"] == "bob")
            assert (listed["name"], listed["state"]) == ("new_job", "WAITING")

    def test_a_form_with_a_job_of_protocol_1_is_refused(self, console: Console, bob: str) -> None:
        form = urlencode({"jobName": "old", "image": "python:3.12", "taskRoles[0][name]": "main"})
        found = answered(console, "POST", "/api/v1/user/bob/jobs", bob, form, FORM, 400)
        assert found["code"] == "InvalidProtocolError"

    def test_it_shows_storages(self, console: Console, bob: str) -> None:
        (storage,) = answered(console, "GET", "/api/v2/storages", bob)["storages"]
        assert answered(console, "GET", f"/api/v2/storages/{storage['name']}", bob)["name"] == storage["name"]


@pytest.mark.usefixtures("form_job")
class TestPortal:
    """OpenPAI's web portal 1.8.1."""

    def test_every_page_reads_the_user_and_alerts(self, console: Console, alice: str) -> None:
        user = answered(console, "GET", "/api/v2/user/alice", alice)
        assert {"username", "email", "admin", "virtualCluster", "grouplist", "storageConfig", "extension"} <= set(user)
        assert answered(console, "GET", "/api/v2/alerts", alice) == []

    def test_home_counts_jobs_by_state(self, console: Console, alice: str) -> None:
        counts = {}
        for state in ("WAITING", "RUNNING", "STOPPED", "FAILED", "SUCCEEDED"):
            query = urlencode({"limit": 0, "withTotalCount": "true", "username": "alice", "state": state})
            found = answered(console, "GET", f"/api/v2/jobs?{query}", alice)
            assert found["data"] == []
            counts[state] = found["totalCount"]
        assert counts["WAITING"] >= 1
        for node in answered(console, "GET", "/api/v2/virtual-clusters?nodes", alice).values():
            assert isinstance(node["gpuAvailable"], int)
        for cluster in answered(console, "GET", "/api/v2/virtual-clusters", alice).values():
            names = {"capacity", "usedCapacity", "dedicated", "numJobs", "resourcesUsed", "resourcesTotal", "status"}
            assert names <= set(cluster)

    def test_the_first_list_of_a_member_has_the_jobs(self, console: Console, alice: str) -> None:
        """The portal puts the name of a member into the filter of priorities, and asks for `default`."""
        query = "jobPriority=default&offset=0&limit=20&withTotalCount=true"
        found = answered(console, "GET", f"/api/v2/jobs?{query}", alice)
        assert "from-form" in {one["name"] for one in found["data"]}

    @pytest.mark.parametrize("field", ["jobName", "submissionTime", "username", "vc", "retries", "state"])
    def test_the_list_has_an_order(self, console: Console, alice: str, field: str) -> None:
        for direction in ("ASC", "DESC"):
            answered(console, "GET", f"/api/v2/jobs?order={field},{direction}&limit=20", alice)

    def test_a_job_has_its_details(self, console: Console, alice: str) -> None:
        base = "/api/v2/jobs/alice~from-form"
        for found in (answered(console, "GET", base, alice), answered(console, "GET", f"{base}/attempts/0", alice)):
            (role,) = found["taskRoles"].values()
            assert {"taskIndex", "taskState", "containerLog", "retries"} <= set(role["taskStatuses"][0])
        status, text = console.ask("GET", f"{base}/config", alice)
        assert (status, yaml.safe_load(text)["name"]) == (200, "from-form")
        assert answered(console, "GET", f"{base}/ssh", alice, status=404)["code"] == "NoJobSshInfoError"
        assert answered(console, "GET", f"{base}/events?type=Warning", alice)["data"] == []
        task = f"{base}/attempts/0/taskRoles/train/taskIndex/0"
        history = answered(console, "GET", f"{task}/attempts", alice)
        assert (history["taskState"], history["taskIndex"], history["retries"]) == ("WAITING", 0, 0)
        assert {"attemptState", "containerLog", "currentAttemptCreatedTime"} <= set(history["attempts"][0])
        assert answered(console, "GET", f"{task}/attempts/0/logs?tail-mode=true", alice, status=404)["code"]

    def test_a_log_needs_no_header(self, console: Console, alice: str) -> None:
        """The portal reads the addresses of `locations` below its own address."""
        train = VSCODE_JOB["taskRoles"]["train"]
        text = yaml.dump({**VSCODE_JOB, "name": RUNS, "taskRoles": {"worker": train}})
        answered(console, "POST", "/api/v2/jobs", alice, text, "text/yaml", 202)
        with kubelet(console) as port:
            start_job(console.admin, port, RUNS)
            end, log = time.monotonic() + 60, ""
            while not log:
                assert time.monotonic() < end, "no address of a log"
                job = answered(console, "GET", f"/api/v2/jobs/alice~{RUNS}", alice)
                log = job["taskRoles"]["worker"]["taskStatuses"][0]["containerLog"]
            for query in ("", "?tail-mode=true"):
                places = {one["name"]: one["uri"] for one in answered(console, "GET", log + query, alice)["locations"]}
                assert set(places) == {"all", "stdout", "stderr"}
                trust = ssl.create_default_context(cafile=str(console.authority))
                with urllib.request.urlopen(console.url + places["all"], timeout=30, context=trust) as answer:  # noqa: S310 # ours
                    assert answer.read() == b"step 0\nstep 1\n"

    def test_the_form_reads_units_and_storages(self, console: Console, alice: str) -> None:
        answered(console, "GET", "/api/v2/cluster/sku-types?vc=default", alice)
        answered(console, "GET", "/api/v2/storages?default=true", alice)
        (storage,) = answered(console, "GET", "/api/v2/storages", alice)["storages"]
        found = answered(console, "GET", f"/api/v2/storages/{storage['name']}", alice)
        # its page of a user fails for every other type
        assert found["type"] in {"nfs", "samba", "azureFile", "azureBlob", "dshuttle", "hdfs", "unknown"}

    def test_an_administrator_manages_users(self, console: Console, root: str, alice: str) -> None:
        """With a closing slash, and without a kind of content, as the portal sends it."""
        new = {"username": "eva", "email": "", "password": "the password of eva", "admin": False}
        text = json.dumps({**new, "virtualCluster": ["default"]})
        plain = "text/plain;charset=UTF-8"
        answered(console, "POST", "/api/v2/user/", root, text, plain, 201)
        assert "eva" in {one["username"] for one in answered(console, "GET", "/api/v2/user", root)}
        assert answered(console, "GET", "/api/v2/user", alice, status=403)["code"] == "ForbiddenUserError"
        for field, value in (("email", {"email": "eva@example.org"}), ("password", {"newPassword": "another of eva"})):
            answered(console, "PUT", f"/api/v2/user/eva/{field}", root, json.dumps(value), plain, 201)
        answered(console, "DELETE", "/api/v2/user/eva", root)

    def test_a_profile_has_tokens_and_keys(self, console: Console, alice: str) -> None:
        token = answered(console, "POST", "/api/v2/tokens/application", alice)["token"]
        assert answered(console, "GET", "/api/v2/tokens", alice)["tokens"]
        keys = {"data": {"username": "alice", "extension": {"sshKeys": []}}, "patch": True}
        answered(console, "PUT", "/api/v2/users/me", alice, json.dumps(keys), "text/plain;charset=UTF-8", 201)
        answered(console, "DELETE", f"/api/v2/tokens/{token}", alice)

    def test_another_site_may_ask(self, console: Console) -> None:
        """The portal is served by another program, on another origin."""
        assert console.ask("OPTIONS", "/api/v2/user/alice")[0] == 204
