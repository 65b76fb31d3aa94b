"""What is read of a pod, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_use.pods import CONDITION, by_hived, condition, is_over, processor_s, recalled
from gpu_use.steps import begin
from job_recorder.use import CONDITION as READ_CONDITION
from job_recorder.use import use_of
from pai_install.jobs.gpu_utilization import use_of as known_use
from pai_install.schedulers.hived.policies import _ISOLATION
from pai_install.site.use_limits import USE_CONDITION

UID = "0f0e0d0c-1111-2222-3333-444455556666"
START = 1_790_000_000


def told() -> dict[str, Any]:
    gpu = begin(START).then(START + 60, 40).then(START + 120, 3)
    return {"status": {"conditions": [condition(gpu, begin(START).then(START + 60, 1), 2, "2026-11-24T00:00:00Z")]}}


def test_what_is_told_is_what_all_three_read() -> None:
    assert CONDITION == READ_CONDITION == USE_CONDITION
    found = recalled(told())
    assert found["gpu"].steps == ((START, 100), (START + 60, 40), (START + 120, 3))
    for use in (use_of(told()), known_use(told())):
        assert use is not None
        assert (use.at, use.gpus, use.gpu) == (START + 120, 2, found["gpu"].steps)
        assert use.cpu == found["cpu"].steps


@pytest.mark.parametrize("message", ["", "{", "[]", '{"version": 2}', '{"version": 1}', '{"version": 1, "at": "x"}', 7])
def test_what_cannot_be_read_is_not_recalled(message: object) -> None:
    assert recalled({"status": {"conditions": [{"type": CONDITION, "message": message}]}}) == {}
    assert recalled({"status": {"conditions": "none"}}) == {}


def test_what_hived_gave() -> None:
    assert by_hived({"metadata": {"annotations": {_ISOLATION[0]: "0,3"}}}) == ["0", "3"]
    assert by_hived({"metadata": {"annotations": {_ISOLATION[0]: ""}}}) == []
    assert by_hived({"metadata": {}}) == []


def test_a_condition_is_one_for_kubernetes() -> None:
    (made,) = told()["status"]["conditions"]
    assert (made["type"], made["status"]) == (CONDITION, "True")
    assert len(json.loads(made["message"])["gpu"]) == 3


def test_what_is_over() -> None:
    assert [is_over({"status": {"phase": phase}}) for phase in ("Running", "Succeeded", "Failed")] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    "folder",
    [
        f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice",
        f"kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice",
        f"kubepods/besteffort/pod{UID}",
    ],
)
def test_processor_time_of_its_control_group(tmp_path: Path, folder: str) -> None:
    assert processor_s(UID, tmp_path) is None
    (tmp_path / folder).mkdir(parents=True)
    assert processor_s(UID, tmp_path) is None
    (tmp_path / folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert processor_s(UID, tmp_path) == 2.5


def test_processor_time_of_a_control_group_of_version_1(tmp_path: Path) -> None:
    folder = tmp_path / "cpuacct/kubepods/burstable" / f"pod{UID}"
    folder.mkdir(parents=True)
    assert processor_s(UID, tmp_path) is None
    (folder / "cpuacct.usage").write_text("2500000000\n")
    assert processor_s(UID, tmp_path) == 2.5


@pytest.mark.parametrize("uid", ["", "../../etc", "*"])
def test_no_other_folder_is_read(tmp_path: Path, uid: str) -> None:
    (tmp_path / "kubepods").mkdir()
    assert processor_s(uid, tmp_path) is None
