"""`storage test` from argv to exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.engine.base import Event
from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.runs import done, event

SERVICES = """\
storages:
  - {name: data, type: nfs, server: nas, path: /data}
authentication:
  group-manager:
    grouplist:
      - {groupname: vision, extension: {acls: {storageConfigs: [data]}}}
"""
WELL = {
    "id": "storage-use",
    "verdict": "PASS",
    "subject": "one",
    "message": "data: mounts, writes, reads back the same",
    "value": "write 95 MB/s, read 110 MB/s",
}
BROKEN = {
    "id": "storage-mount",
    "verdict": "FAIL",
    "subject": "two",
    "message": "data cannot be mounted: the server does not answer",
    "value": "mount.nfs: Connection timed out",
    "remedy": "look at the server",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / "services-configuration.yaml").write_text(SERVICES)
    return folder


@pytest.fixture
def world(in_world: Any) -> World:
    """One worker mounts the storage, the other does not."""
    made: World = in_world(World(script={"storage-test.yml": done(found(WELL, BROKEN))}))
    return made


def found(*findings: dict[str, str]) -> Event:
    """What the module on the control plane says of the workers."""
    said = event("ok", "master", "Mount", findings=list(findings))
    return replace(said, action="pai_storage_probe")


def test_a_worker_that_does_not_mount_fails_the_test_and_the_others_are_told(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    assert run(["storage", "test", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    out = capsys.readouterr().out
    assert out == snapshot
    assert [request.playbook for request in world.ansible.requests] == ["observe.yml", "storage-test.yml"]


def test_the_report_as_json_has_every_finding(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world.script["storage-test.yml"] = done(found(WELL))
    assert run(["storage", "test", "data", "--site", str(site), "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    assert [(row["subject"], row["verdict"], row["value"]) for row in report["findings"]] == snapshot


@pytest.mark.parametrize(
    "words", [["dato"], ["--limit", "master"], ["--limit", "three"], ["--size", "25"], ["--timeout", "1"]]
)
def test_wrong_arguments_ask_no_machine(site: Path, world: World, words: list[str]) -> None:
    assert run(["storage", "test", "--site", str(site), *words]) == ExitCode.USAGE
    assert world.ansible.requests == []
