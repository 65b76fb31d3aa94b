"""Stand-ins for CPUs and memory."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from pai_install.lab import size
from pai_install.lab.rootfs import machine_entries
from pai_install.lab.spec import LabMachine

GIB = 2**30
FOLDER = "var/lib/pai-stand-in-size"


@pytest.fixture(autouse=True)
def box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "box_cores", lambda: 2)
    monkeypatch.setattr(size, "box_memory", lambda: 4 * GIB)


def machine(cores: int, memory: int) -> LabMachine:
    return LabMachine("one", IPv4Address("172.30.79.11"), cores=cores, memory=memory * GIB)


def test_a_machine_that_is_no_larger_than_the_box_has_no_stand_ins() -> None:
    assert size.entries(machine(2, 4)) == {}


def test_more_cores_are_shown_where_the_kubelet_counts_them() -> None:
    entries = size.entries(machine(8, 4))
    cores = [name for name in entries if name.endswith("/topology/core_id")]
    assert cores == [f"{FOLDER}/node/node0/cpu{cpu}/topology/core_id" for cpu in range(8)]
    assert entries[f"{FOLDER}/online"].content == "0-7\n"
    assert f"{FOLDER}/memory-kb" not in entries


def test_more_memory_is_shown_in_meminfo() -> None:
    large = machine(1, 32)
    assert size.entries(large)[f"{FOLDER}/memory-kb"].content == f"{32 * 2**20}\n"
    assert size.entries(large).items() <= machine_entries(large, "pai", "").items()
