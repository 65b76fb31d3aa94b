"""What a storage test says of the pods, events, nodes and claims that a cluster shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

VERDICT = module_util("pai_storage_verdict")
POD = module_util("pai_storage_pod")
RECORDED = json.loads((Path(__file__).parent / "recorded" / "storage_pods.json").read_text())
WAITED_S = 150.0


def trial(*, read_only: bool = False) -> Any:
    return POD.Trial(POD.Grant("data", "vision", "data", read_only), "worker-1", "storage-test-ab12-0")


def events_of(name: str) -> list[str]:
    found: list[str] = VERDICT.mount_events(RECORDED[name]["events"]).get(("vision", "storage-test-ab12-0"), [])
    return found


def judged(name: str) -> dict[str, str]:
    recorded = RECORDED[name]
    found: dict[str, str] = VERDICT.judge(trial(), recorded["pod"], events_of(name), recorded["log"], WAITED_S)
    assert found["subject"] == "worker-1"
    return found


CANNOT = "data cannot be mounted: "
SAID = {
    "succeeded": ("storage-use", "PASS", "data: mounts, writes, reads back the same"),
    "nfs timeout": ("storage-mount", "FAIL", f"{CANNOT}the server does not answer"),
    "nfs refused address": ("storage-mount", "FAIL", f"{CANNOT}the server refuses this worker"),
    "nfs no export": ("storage-mount", "FAIL", f"{CANNOT}the server has no such folder or share"),
    "no nfs client": ("storage-mount", "FAIL", f"{CANNOT}the worker has no client for it"),
    "hostPath missing": ("storage-mount", "FAIL", f"{CANNOT}the worker does not have the folder"),
    "local missing": ("storage-mount", "FAIL", f"{CANNOT}the worker does not have the folder"),
    "wrong password": ("storage-mount", "FAIL", f"{CANNOT}the server refuses the login"),
    "no csi driver": ("storage-mount", "FAIL", f"{CANNOT}the driver does not run on this worker"),
    "claim went away": ("storage-mount", "FAIL", f"{CANNOT}an object of the storage is missing"),
    "creating until the deadline": (
        "storage-mount",
        "FAIL",
        f"{CANNOT}the mount did not end within 150 s",
    ),
    "only the summary": ("storage-mount", "FAIL", f"{CANNOT}the mount did not end within 150 s"),
    "image missing": (
        "storage-mount",
        "UNKNOWN",
        "data: not tested, the worker cannot pull the image of the test pod",
    ),
    "no room for pods": ("storage-mount", "UNKNOWN", "data: not tested, the worker takes no pod"),
    "kubelet silent": ("storage-mount", "UNKNOWN", "data: not tested, its kubelet does not take the pod"),
    "hangs writing": ("storage-use", "FAIL", "data is mounted, and hangs: writing did not end within 150 s"),
    "killed while writing": ("storage-use", "FAIL", "data is mounted, and hangs: writing did not end within 150 s"),
    "write refused": ("storage-use", "FAIL", "data is mounted, and making a folder failed: it is mounted read-only"),
    "permission denied": (
        "storage-use",
        "FAIL",
        "data is mounted, and making a folder failed: the server or the worker does not permit it",
    ),
    "no space": ("storage-use", "FAIL", "data is mounted, and writing failed: it has no room left"),
    "stale handle": (
        "storage-use",
        "FAIL",
        "data is mounted, and looking at it failed: its mount on this worker is broken",
    ),
    "data differ": ("storage-use", "FAIL", "data: the data read differ from the data written"),
    "no room for the data": (
        "storage-mount",
        "UNKNOWN",
        "data: not tested, its pod could not create the test data",
    ),
    "said nothing": ("storage-mount", "UNKNOWN", "data: not tested, its pod said nothing"),
}


@pytest.mark.parametrize("name", SAID)
def test_verdict_on_what_was_recorded(name: str) -> None:
    found = judged(name)
    assert (found["id"], found["verdict"], found["message"]) == SAID[name]
    assert found["verdict"] == "PASS" or found["remedy"]


def test_rates_are_megabytes_per_second_with_what_the_folder_looks_like(snapshot: SnapshotAssertion) -> None:
    assert judged("succeeded")["value"] == snapshot
    assert judged("read from memory, only root writes")["value"] == snapshot


def test_a_write_that_took_no_time_is_no_division_by_zero() -> None:
    assert VERDICT.rate({"mib": "16", "write_cs": "0"}, "write") == "1678"
    assert VERDICT.rate({}, "write") == "?"


def test_the_words_of_the_mount_program_are_the_evidence() -> None:
    value = judged("nfs no export")["value"]
    assert value.endswith("mounting 10.0.0.9:/data failed, reason given by server: No such file or directory")
    assert len(value) <= 400
    assert "differ: byte 4097" in judged("data differ")["value"]
    assert "mode 755, owner 1000:1000" in judged("permission denied")["value"]


@pytest.mark.parametrize(
    ("name", "age", "over"),
    [
        ("succeeded", 1, True),
        ("no space", 1, True),
        ("nfs no export", 29, False),
        ("nfs no export", 31, True),
        ("only the summary", 31, True),
        ("image missing", 31, True),
        ("kubelet silent", 149, False),
        ("hangs writing", 149, False),
    ],
)
def test_nothing_waits_for_what_cannot_come(name: str, age: float, over: bool) -> None:
    assert VERDICT.ended(RECORDED[name]["pod"], events_of(name), age) is over


def test_a_mount_that_goes_on_is_waited_for() -> None:
    summary = events_of("only the summary")
    assert not VERDICT.ended(RECORDED["nfs timeout"]["pod"], summary, 100)


def test_a_pod_that_went_away_says_nothing_of_the_storage() -> None:
    assert VERDICT.judge(trial(), None, [], "", WAITED_S)["verdict"] == "UNKNOWN"


@pytest.mark.parametrize(("wrote", "verdict"), [("wrote=yes\n", "FAIL"), ("", "PASS")])
def test_a_read_only_storage_must_refuse(wrote: str, verdict: str) -> None:
    message = f"step=stat\nmode=755\nowner=0:0\nstep=list\nstep=refuse\n{wrote}step=done\n"
    state = {"terminated": {"exitCode": 0, "message": message}}
    pod = {"status": {"phase": "Succeeded", "startTime": "x", "containerStatuses": [{"state": state}]}}
    found = VERDICT.judge(trial(read_only=True), pod, [], "", WAITED_S)
    assert (found["id"], found["verdict"], found["value"]) == ("storage-use", verdict, "mode 755, owner 0:0")


def test_a_claim_must_be_bound(snapshot: SnapshotAssertion) -> None:
    grant = trial().grant

    def said(phase: str) -> Any:
        return VERDICT.claim_problem(grant, {("vision", "data"): {"status": {"phase": phase}}})

    assert said("Bound") is None
    assert said("Pending")["message"] == snapshot
    assert (said("Lost")["value"], said("Lost")["verdict"]) == ("Lost", "FAIL")
    assert VERDICT.claim_problem(grant, {})["message"] == snapshot


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (None, "data: not tested, not a node of the cluster"),
        ("False", "data: not tested, node is not Ready"),
        ("Unknown", "data: not tested, node is not Ready"),
        ("True", None),
    ],
)
def test_a_worker_must_be_a_ready_node(node: str | None, message: str | None) -> None:
    ready = {"type": "Ready", "status": node, "message": "Kubelet stopped posting node status."}
    nodes = {} if node is None else {"worker-1": {"status": {"conditions": [ready]}}}
    found = VERDICT.node_problem(trial(), nodes)
    assert (found and (found["verdict"], found["message"])) == (message and ("UNKNOWN", message))


def test_words_of_hostile_objects_break_nothing() -> None:
    broken = {"status": {"containerStatuses": [{"state": {"terminated": {"message": 7}}}]}}
    pods: list[Any] = [{}, {"status": []}, broken]
    for pod in pods:
        assert VERDICT.judge(trial(), pod, [], "", WAITED_S)["verdict"] == "UNKNOWN"
    assert VERDICT.mount_events([{}, {"reason": "FailedMount", "involvedObject": 3}]) == {("", ""): [""]}
