"""OpenPAI's JavaScript SDK and its command `pai`, as npm has them, against a console on a real API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.addons import ROOT
from tests.integration.openpai.conftest import Console, console, quickstart
from tests.integration.openpai.node_clients import HERE, SDK, NodeClients
from tests.npm import installed
from tests.waiting import until

__all__ = ["console", "quickstart"]

Answers = dict[str, Any]
JOB = "sdk-job"


@pytest.fixture(scope="module")
def clients(console: Console, tmp_path_factory: pytest.TempPathFactory) -> NodeClients:
    return NodeClients(installed(f"{SDK}@0.1.5"), tmp_path_factory.mktemp("home"), console)


def job_file(folder: Path, name: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text((ROOT / "layouts/quickstart/job.yaml").read_text().replace("first-job", name))
    return path


def cluster_of(console: Console, name: str) -> str:
    address = f"{console.url.removeprefix('https://')}/rest-server"
    found = {"alias": "here", "rest_server_uri": address, "https": True}
    return json.dumps({**found, "username": name, "password": console.password(name)})


@pytest.fixture(scope="module")
def answers(clients: NodeClients) -> Answers:
    """Call -> result or error of alice's SDK, in one session."""
    more = {
        "CLUSTER": cluster_of(clients.console, "alice"),
        "JOB": str(job_file(clients.home, JOB)),
        "NAME": JOB,
    }
    done = clients.run([HERE / "sdk.js"], more)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


def value(answers: Answers, call: str) -> Any:
    assert "value" in answers[call], answers[call]
    return answers[call]["value"]


def error(answers: Answers, call: str) -> str:
    """The code of OpenPAI."""
    found = answers[call].get("error")
    assert found, answers[call]
    return str((found if isinstance(found, dict) else json.loads(found))["code"])


def test_it_signs_in(answers: Answers) -> None:
    assert value(answers, "info")["launcherType"] == "k8s"
    found = value(answers, "login")
    assert (found["user"], found["admin"]) == ("alice", False)
    assert value(answers, "user")["grouplist"] == ["team"]


def test_it_submits_lists_and_stops_a_job(answers: Answers) -> None:
    assert value(answers, "submit")["status"] == 202
    (listed,) = value(answers, "list")
    assert (listed["username"], listed["name"], listed["virtualCluster"]) == ("alice", JOB, "default")
    assert (listed["state"], listed["totalGpuNumber"], listed["totalTaskNumber"]) == ("WAITING", 2, 2)
    roles = value(answers, "job")["taskRoles"]
    assert set(roles) == {"ps", "worker"}
    assert roles["worker"]["taskStatuses"][0]["containerLog"] == "", "the schema of OpenPAI wants a text"
    assert value(answers, "config")["taskRoles"]["worker"]["resourcePerInstance"]["gpu"] == 2
    assert value(answers, "events")["totalCount"] == 0
    assert value(answers, "stop")["status"] == 202


def test_errors_have_the_codes_of_openpai(answers: Answers) -> None:
    assert error(answers, "again") == "ConflictJobError"
    assert error(answers, "missing") == "NoJobError"
    assert error(answers, "users") == "ForbiddenUserError"
    assert error(answers, "group") == "ForbiddenUserError"


def test_tags_select_jobs(answers: Answers) -> None:
    assert [job["name"] for job in value(answers, "tagged")] == [JOB]


def test_it_sees_clusters_storages_and_groups(answers: Answers) -> None:
    assert value(answers, "clusters")["default"]["resourcesTotal"]["gpu"] == 16
    assert value(answers, "cluster")["status"] == "RUNNING"
    assert [it["name"] for it in value(answers, "storages")["storages"]] == ["data"]
    assert value(answers, "storage")["name"] == "data"
    assert {it["groupname"] for it in value(answers, "groups")} >= {"admins", "team"}


def test_a_listed_token_cannot_be_used(answers: Answers, clients: NodeClients) -> None:
    made = value(answers, "application")["token"]
    assert clients.console.ask("GET", "/api/v2/jobs", made)[0] == 200
    for token in value(answers, "tokens")["tokens"]:
        assert clients.console.ask("GET", "/api/v2/jobs", token)[0] == 401


def test_pai_submits_and_lists(clients: NodeClients) -> None:
    token = json.loads(clients.console.ask("POST", "/api/v2/tokens/application", clients.console.token("bob"))[1])
    clients.pai("addc", clients.console.url, "bob", token["token"], "--alias", "here")
    assert "here" in clients.pai("listc")
    clients.pai("subj", "here", str(job_file(clients.home, "pai-job")))
    assert "pai-job" in clients.pai("getj", "here", "pai-job")
    until(lambda: "pai-job" in clients.pai("listj", "here"), pause_s=0.5)
