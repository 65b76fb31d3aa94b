"""The script that makes the device files of NVIDIA's driver and describes them for container runtimes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.parts.watchers import wait_for_pause

ROLE = Path(__file__).parents[3] / "roles" / "container_runtime"
SCRIPT = ROLE / "files" / "nvidia-devices.sh"
# what stand-ins for NVIDIA's programs write down: what they were asked for
CTK = """#!/bin/sh
echo "ctk $*" >> {folder}/asked
[ "$1" = system ] && exit 0
[ -e {folder}/broken ] && exit 1
for word; do case $word in --output=*) echo spec > "${{word#--output=}}";; esac; done
"""
MODINFO = """#!/bin/sh
cat {folder}/module 2>/dev/null
"""
MODPROBE = """#!/bin/sh
echo "modprobe $*" >> {folder}/asked
"""


class Machine:
    """A folder with programs that stand for NVIDIA's, and the script that looks into it. script: its process."""

    script = 0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spec = folder / "cdi.yaml"
        (folder / "bin").mkdir()
        self.program("nvidia-ctk", CTK)
        self.program("modinfo", MODINFO)

    def program(self, name: str, text: str) -> None:
        """A stand-in for one of NVIDIA's programs."""
        path = self.folder / "bin" / name
        path.write_text(text.format(folder=self.folder))
        path.chmod(0o755)

    def driver(self, version: str) -> None:
        """The driver's module is installed."""
        (self.folder / "module").write_text(f"{version}\n")

    def words(self, *arguments: str) -> list[str]:
        """The command line of the script, with its folders below the test's and without its pauses."""
        text = SCRIPT.read_text().replace("/var/run/cdi/nvidia.yaml", str(self.spec))
        text = text.replace("/proc/driver", f"{self.folder}/driver").replace("pause=15", "pause=0.1")
        text = text.replace("$((pause * 2))", "0.2").replace('[ "$pause" -lt 900 ]', "true")
        return ["sh", "-c", text, "nvidia-devices", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """With the stand-ins first."""
        return {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def once(self) -> subprocess.CompletedProcess[str]:
        """What the start of the machine does."""
        return subprocess.run(
            self.words("once"), env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )

    @property
    def asked(self) -> list[str]:
        """What was asked of NVIDIA's programs."""
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def watching(machine: Machine) -> Iterator[Machine]:
    """The script at work, on a machine that had no driver when it began."""
    with subprocess.Popen(machine.words(), env=machine.environment) as process:
        wait_for_pause(process.pid)
        machine.script = process.pid
        yield machine
        process.kill()


def comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_without_a_driver_there_is_nothing_to_describe(machine: Machine) -> None:
    machine.spec.write_text("of a driver that is gone")
    done = machine.once()
    assert done.returncode == 0
    assert "no NVIDIA driver" in done.stdout
    assert (machine.asked, machine.spec.exists()) == ([], False)


def test_device_files_are_made_before_they_are_described(machine: Machine) -> None:
    machine.driver("580.95.05")
    assert machine.once().returncode == 0
    assert machine.asked == [
        "ctk system create-device-nodes --control-devices --load-kernel-modules",
        f"ctk cdi generate --output={machine.spec}",
    ]
    assert machine.spec.exists()


def test_a_loaded_driver_without_a_module_that_modinfo_finds_is_described(machine: Machine) -> None:
    """As on a virtual machine with an H100, which had no modinfo."""
    version = machine.folder / "driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n")
    assert machine.once().returncode == 0
    assert machine.spec.exists()


def test_the_drivers_own_program_makes_them_where_there_is_one(machine: Machine) -> None:
    machine.program("nvidia-modprobe", MODPROBE)
    machine.driver("580.95.05")
    machine.once()
    assert machine.asked[0] == "modprobe -u -c=0"


def test_devices_that_cannot_be_described_are_not_described_by_an_old_file(machine: Machine) -> None:
    machine.driver("580.95.05")
    machine.spec.write_text("of another driver")
    (machine.folder / "broken").touch()
    done = machine.once()
    assert done.returncode == 1
    assert "could not be described" in done.stderr
    assert not machine.spec.exists()


def test_a_driver_that_comes_later_is_noticed(watching: Machine) -> None:
    watching.driver("580.95.05")
    assert comes_true(watching.spec.exists)


def test_new_slices_are_described_again_and_nothing_is_without_a_change(watching: Machine) -> None:
    watching.driver("580.95.05")
    assert comes_true(watching.spec.exists)
    wait_for_pause(watching.script)  # it has looked at what it described
    time.sleep(0.6)
    assert len(watching.asked) == 2
    (watching.folder / "driver/nvidia/capabilities/gpu0/mig/gi1/ci0").mkdir(parents=True)
    assert comes_true(lambda: len(watching.asked) == 4)


def test_what_went_wrong_is_tried_again(watching: Machine) -> None:
    (watching.folder / "broken").touch()
    watching.driver("580.95.05")
    assert comes_true(lambda: len(watching.asked) >= 4)
    (watching.folder / "broken").unlink()
    assert comes_true(watching.spec.exists)
