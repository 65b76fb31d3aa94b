"""The stand-ins for memory and CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from pai_install.lab import size
from pai_install.lab.rootfs import machine_entries
from pai_install.lab.spec import LabMachine

GIB = 2**30
FOLDER = "var/lib/pai-stand-in-size"


@pytest.fixture(autouse=True)
def box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "box_memory", lambda: 4 * GIB)
    monkeypatch.setattr(size, "box_cpus", lambda: 2)


def machine(memory: int, cpus: int = 2) -> LabMachine:
    return LabMachine("one", IPv4Address("172.30.79.11"), memory=memory * GIB, cpus=cpus)


def test_a_machine_that_is_no_larger_than_the_box_has_no_stand_in() -> None:
    assert size.entries(machine(4)) == {}


def test_more_memory_is_shown_in_meminfo() -> None:
    large = machine(32)
    assert size.entries(large)[f"{FOLDER}/memory-kb"].content == f"{32 * 2**20}\n"
    assert size.entries(large).items() <= machine_entries(large, "pai", "").items()


def test_more_cpus_alone_need_no_stand_in_for_memory() -> None:
    entries = size.entries(machine(4, cpus=8))
    assert entries[f"{FOLDER}/cpus"].content == "8\n"
    assert f"{FOLDER}/memory-kb" not in entries


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_machine_shows_the_cpus_of_its_sku(tmp_path: Path) -> None:
    """The C library, and so Python, counts the CPUs that are online. The kubelet counts folders, and uses real ones."""
    folder = tmp_path / "size"
    folder.mkdir()
    (folder / "cpus").write_text("8\n")
    script = tmp_path / "script"
    text = size.entries(machine(4, cpus=8))["usr/local/sbin/size-boot-stand-in"].content
    script.write_text(text.replace(f"/{FOLDER}", str(folder)))
    count = "ls -d /sys/devices/system/cpu/cpu[0-9]* /sys/devices/system/node/node* 2>/dev/null | wc -l"
    online = f"{sys.executable} -c 'import os; print(os.cpu_count())'"
    usable = "ls -d /sys/devices/system/cpu/cpu[0-9]*/topology | wc -l"
    commands = f"sh {script} && {count} && {online} && {usable}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", commands], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["8", "8", f"{min(8, os.cpu_count() or 8)}"], "a cpuset of others is refused"
