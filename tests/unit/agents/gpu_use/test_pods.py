"""What is read of a pod, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.agents.gpu_use.pods import hived_gpus, is_over, processor_s
from pai_install.schedulers.hived.policies import _ISOLATION

UID = "0f0e0d0c-1111-2222-3333-444455556666"
START = 1_790_000_000


def test_what_hived_gave() -> None:
    assert hived_gpus({"metadata": {"annotations": {_ISOLATION[0]: "0,3"}}}) == ["0", "3"]
    assert hived_gpus({"metadata": {"annotations": {_ISOLATION[0]: ""}}}) == []
    assert hived_gpus({"metadata": {}}) == []


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
