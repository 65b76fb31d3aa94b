"""The stand-in for memory."""

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
    monkeypatch.setattr(size, "box_memory", lambda: 4 * GIB)


def machine(memory: int) -> LabMachine:
    return LabMachine("one", IPv4Address("172.30.79.11"), memory=memory * GIB)


def test_a_machine_that_is_no_larger_than_the_box_has_no_stand_in() -> None:
    assert size.entries(machine(4)) == {}


def test_more_memory_is_shown_in_meminfo() -> None:
    large = machine(32)
    assert size.entries(large)[f"{FOLDER}/memory-kb"].content == f"{32 * 2**20}\n"
    assert size.entries(large).items() <= machine_entries(large, "pai", "").items()
