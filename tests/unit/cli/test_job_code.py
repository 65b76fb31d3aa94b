"""`pai-install job submit --code` above 1 MiB, before a cluster in memory."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from pai_install.cluster.client import ApiError
from pai_install.errors import ExitCode
from pai_install.jobs.code_pod import ABSENT, NOT_EQUAL, PRESENT
from pai_install.kube.model import Ref
from tests.unit.cli.stub_environment import World, run
from tests.unit.cli.test_vc import site
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import GROUPS

SERVICES = VALID + GROUPS.replace("{groupname: nlp}", "{groupname: nlp, extension: {acls: {storageConfigs: [data]}}}")
STORAGES = "storages: [{name: data, type: nfs, server: nas, path: /data}]\n"
FILE = """\
protocolVersion: 2
name: mnist
type: job
prerequisites: [{type: dockerimage, name: image, uri: "example.com/train:1"}]
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 1}
    commands: [python train.py]
"""


@pytest.fixture
def world(in_world: Any) -> World:
    made: World = in_world(World())
    return made


@pytest.fixture
def submit(tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Submits a job with large code. said: of the pod, "" for one that does not start."""
    (tmp_path / "site").mkdir()
    folder = site(tmp_path / "site", SERVICES + STORAGES)
    root = tmp_path / "code"
    root.mkdir()
    (root / "noise").write_bytes(os.urandom(1_200_000))
    (tmp_path / "job.yaml").write_text(FILE)
    monkeypatch.setattr("pai_install.app.code_storage._POLL_S", 0)

    def submitted(said: str = ABSENT, stands: dict[str, Any] | None = None) -> int:
        def made(item: Any) -> list[Any]:
            if item["kind"] != "Pod":
                return [item]
            world.api.logged[item["metadata"]["name"]] = f"{said}\n"
            state = {"running": {}} if said else {"waiting": {"reason": "ImagePullBackOff"}}
            phase = "Running" if said else "Failed"
            return [{**item, "status": stands or {"phase": phase, "containerStatuses": [{"state": state}]}}]

        world.api.makes = made
        words = ["--code", str(root), "--group", "nlp", "--user", "alice", "--site", str(folder)]
        return run(["job", "submit", str(tmp_path / "job.yaml"), *words])

    return submitted


def pods(world: World) -> list[Ref]:
    return [ref for ref in world.api.objects if ref.kind == "pod"]


def test_large_code_goes_to_the_storage_before_the_job(submit: Any, world: World) -> None:
    assert submit() == ExitCode.OK
    ((words, content),) = world.fed
    assert words[:4] == ("exec", "--stdin", "--namespace", "nlp")
    made = world.api.objects[Ref("jobset", "mnist", "nlp")]
    notes = made["metadata"]["annotations"]
    assert notes["pai-install/code"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    template = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert {"name": "code", "persistentVolumeClaim": {"claimName": "data"}} in template["volumes"]
    (mount,) = [one for one in template["containers"][0]["volumeMounts"] if one["name"] == "code"]
    assert (mount["subPath"], mount["readOnly"]) == (".pai-code/nlp", True)
    assert not pods(world)
    order = [name for name, subject in world.api.calls if name in {"create", "delete"} and subject]
    assert order == ["create", "delete", "create"]


def test_the_pod_has_the_rights_of_its_owner(submit: Any, world: World) -> None:
    submit()
    asked = [subject for name, subject in world.api.calls if name == "dry_run"]
    ((pod,), identity) = next(one for one in asked if one[0] and one[0][0]["kind"] == "Pod")
    assert identity.user.endswith("alice")
    assert pod["metadata"]["labels"]["pai-install/user"] == "alice"
    (container,) = pod["spec"]["containers"]
    assert not any(name.startswith("nvidia.com") for name in container["resources"]["limits"])


def test_known_code_is_not_sent(submit: Any, world: World) -> None:
    assert submit(PRESENT) == ExitCode.OK
    assert world.fed == []
    assert Ref("jobset", "mnist", "nlp") in world.api.objects


@pytest.mark.parametrize("feeds", [NOT_EQUAL, 255, KeyboardInterrupt()])
def test_a_lost_upload_leaves_no_pod_and_no_job(submit: Any, world: World, feeds: Any) -> None:
    world.feeds = feeds
    assert submit() == (ExitCode.INTERRUPTED if isinstance(feeds, KeyboardInterrupt) else ExitCode.STEP_FAILED)
    assert not pods(world)
    assert Ref("jobset", "mnist", "nlp") not in world.api.objects


def test_a_pod_that_does_not_start_says_why(submit: Any, world: World, capsys: Any) -> None:
    assert submit("") == ExitCode.STEP_FAILED
    assert "ImagePullBackOff" in capsys.readouterr().err
    assert not pods(world)


def test_a_pod_without_a_node_says_why(submit: Any, world: World, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.app.code_storage._START_S", 0.2)
    why = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient memory."}
    assert submit("", {"phase": "Pending", "conditions": [why]}) == ExitCode.STEP_FAILED
    assert "Insufficient memory" in capsys.readouterr().err
    assert not pods(world)


def test_a_refused_pod_sends_nothing(submit: Any, world: World) -> None:
    world.api.rejects = ApiError("no", reason="Forbidden", details="denied request: no")
    assert submit() != ExitCode.OK
    assert world.fed == []


@pytest.mark.parametrize(
    ("section", "cause"),
    [("{storage: dta}", "no storage"), ("{storage: old}", "read-only"), ("{max-mib: 0}", "from 1")],
)
def test_validate_names_the_line(section: str, cause: str, tmp_path: Path, world: World, capsys: Any) -> None:
    del world
    old = "storages:\n  - {name: data, type: nfs, server: nas, path: /data}\n"
    old += "  - {name: old, type: nfs, server: nas, path: /old, read-only: true}\n"
    folder = site(tmp_path, f"{SERVICES}{old}jobs:\n  code: {section}\n")
    assert run(["validate", "--site", str(folder)]) == ExitCode.SITE_INVALID
    shown = "".join(capsys.readouterr())
    line = f"{SERVICES}{old}".count("\n") + 2
    assert f"services-configuration.yaml:{line}:" in shown
    assert cause in shown
