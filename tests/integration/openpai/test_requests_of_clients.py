"""Requests as OpenPAI's clients write them: what a client reads of each answer is there.

The clients themselves are no part of this repository. docs/console.md names them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.integration.openpai.conftest import Console, api, console, programs

__all__ = ["api", "console", "programs"]
# the body of each request of the Python SDK without another one
NOTHING: dict[str, Any] = {}
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
