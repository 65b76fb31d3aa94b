"""OpenPAI's Python SDK 0.4.0 and its command `opai`, against a console on a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.addons import ROOT
from tests.integration.openpai.conftest import Console, console, quickstart
from tests.integration.openpai.opai_program import NEEDS_OPAI, PROGRAM, Opai

__all__ = ["console", "quickstart"]
pytestmark = NEEDS_OPAI
HERE = ("--cluster-alias", "here")
V1 = {
    "jobName": "opai-old",
    "image": "python:3.12",
    "virtualCluster": "default",
    "taskRoles": [{"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 1024, "command": "python -V"}],
}
SUBMIT = """
import json, os
from openpaisdk.job import Job
job = Job()
job.protocol = json.loads(os.environ["JOB"])
print(json.dumps(job.submit("here")))
"""


@pytest.fixture(scope="module")
def opai(console: Console, tmp_path_factory: pytest.TempPathFactory) -> Opai:
    made = Opai(tmp_path_factory.mktemp("home"), console)
    person = ("--user", "alice", "--password", console.password("alice"))
    made.run("cluster", "add", *HERE, "--pai-uri", console.url, *person)
    return made


def seen(opai: Opai, name: str) -> Any:
    """The job, as its owner reads it."""
    status, text = opai.console.ask("GET", f"/api/v2/jobs/alice~{name}", opai.console.token("alice"))
    assert status == 200, text
    return json.loads(text)


def test_it_adds_a_cluster(opai: Opai) -> None:
    (found,) = yaml.safe_load((opai.home / ".openpai/clusters.yaml").read_text())
    assert (found["info"]["authnMethod"], found["virtual_clusters"]) == ("basic", ["default"])
    assert "default" in opai.run("cluster", "list")
    (_, _, line) = opai.run("cluster", "resources").splitlines()
    assert line.split()[:3] == ["here", "default", "16"]
    opai.run("cluster", "update")
    made = json.loads(opai.console.ask("POST", "/api/v2/tokens/application", opai.console.token("bob"))[1])
    place = ("--pai-uri", opai.console.url, "--user", "bob", "--token", made["token"])
    opai.run("cluster", "add", "--cluster-alias", "by-token", *place)
    opai.run("cluster", "delete", "by-token")


def test_it_submits_and_stops_commands(opai: Opai) -> None:
    size = ("--gpu", "1", "--cpu", "2", "--mem", "4GB")
    job = ("--job-name", "opai-job", "--image", "python:3.12", "--virtual-cluster", "default")
    assert "opai-job" in opai.run("job", "sub", *HERE, *job, *size, "--no-browser", "python", "-V")
    found = seen(opai, "opai-job")
    assert (found["jobStatus"]["state"], found["jobStatus"]["virtualCluster"]) == ("WAITING", "default")
    config = opai.console.ask("GET", "/api/v2/jobs/alice~opai-job/config", opai.console.token("alice"))[1]
    assert opai.console.password("alice") not in config, "the SDK puts the password into the job's secrets"
    assert "python -V" in config
    opai.run("job", "stop", *HERE, "opai-job")
    assert seen(opai, "opai-job")["jobStatus"]["state"] in ("STOPPING", "STOPPED")


@pytest.mark.parametrize("protocol", [1, 2])
def test_it_submits_both_protocols(opai: Opai, protocol: int) -> None:
    name = f"opai-{protocol}"
    if protocol == 1:
        job = {**V1, "jobName": name, "protocolVersion": 1}
    else:
        job = yaml.safe_load((ROOT / "layouts/quickstart/job.yaml").read_text().replace("first-job", name))
    opai.script(SUBMIT, {"JOB": json.dumps(job)})
    assert seen(opai, name)["jobStatus"]["state"] == "WAITING"


def test_it_reads_jobs_without_a_token_and_is_refused(opai: Opai) -> None:
    for words in (("job", "list"), ("job", "status", "opai-1")):
        assert "UnauthorizedUserError" in opai.ended([PROGRAM, *words, *HERE]).stderr
