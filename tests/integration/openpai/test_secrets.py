"""Jobs with secrets over OpenPAI's API: as their user, who may not read Secrets, and again after their end."""

from __future__ import annotations

import base64
import json

from tests.integration.openpai.conftest import Console, console, quickstart

__all__ = ["console", "quickstart"]

FILE = """\
protocolVersion: 2
name: secretive
type: job
prerequisites:
  - type: dockerimage
    name: image
    uri: example.com/train:1
    auth: {username: robot, password: <% $secrets.key %>}
secrets: {key: open-sesame}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 1}
    commands: [echo <% $secrets.key %>]
"""
JOB = "/api/v2/jobs/alice~secretive"
SECRETS = "/api/v1/namespaces/team/secrets"


def secrets(console: Console) -> dict[str, str]:
    """Name -> values of the Secrets of jobs."""
    found = console.admin.ask("GET", f"{SECRETS}?labelSelector=pai-install/job")["items"]
    return {
        one["metadata"]["name"]: " ".join(base64.b64decode(text).decode() for text in one["data"].values())
        for one in found
    }


def test_secrets_of_a_member_are_kept_apart(console: Console) -> None:
    token = console.token("alice")
    status, text = console.ask("POST", "/api/v2/jobs", token, FILE, "text/yaml")
    assert status == 202, text
    kept = secrets(console)
    assert sorted(kept) == ["alice.secretive-worker-command", "alice.secretive-worker-login"]
    assert "open-sesame" in kept["alice.secretive-worker-command"]
    (job,) = console.admin.ask("GET", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets")["items"]
    assert "open-sesame" not in json.dumps(job)
    status, text = console.ask("GET", f"{JOB}/config", token)
    assert status == 200
    assert "open-sesame" not in text


def test_a_job_without_its_secrets_starts_by_its_file_alone(console: Console) -> None:
    """OpenPAI answers so where it has no file of a job."""
    token = console.token("alice")
    path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets/secretive"
    ended = {"status": {"terminalState": "Failed", "conditions": [{"type": "Failed", "status": "True"}]}}
    console.admin.ask("PATCH", path, ended, "application/merge-patch+json")
    status, text = console.ask("PUT", f"{JOB}/executionType", token, {"value": "START"})
    found = json.loads(text)
    assert (status, found["code"]) == (404, "NoJobConfigError"), text
    assert "/jobs/new?from=alice~secretive" in found["message"]
    assert "open-sesame" not in text
    assert sorted(secrets(console)) == ["alice.secretive-worker-command", "alice.secretive-worker-login"]
