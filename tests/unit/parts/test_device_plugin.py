"""The device plugin's DaemonSet, and the script that starts it anew when the driver changes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.addons import addon_action
from tests.unit.parts.watchers import wait_for_pause

ADDON = Path(__file__).parents[3] / "addons" / "device_plugin"
SCRIPT = ADDON / "files" / "watch-driver.sh"


def rendered() -> dict[str, Any]:
    """The DaemonSet as the add-on applies it."""
    (found,) = addon_action().objects_of(ADDON, {"image": "plugin:1", "watcher_image": "busybox:1"})
    plugin: dict[str, Any] = found
    return plugin


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    """The pods' specification."""
    found: dict[str, Any] = rendered()["spec"]["template"]["spec"]
    return found


@pytest.fixture
def containers(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By name."""
    return {container["name"]: container for container in pod["containers"]}


def test_it_runs_where_the_label_is_whatever_the_taints(pod: dict[str, Any]) -> None:
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "system-node-critical"
    assert "runtimeClassName" not in pod, "it must run where there is no driver, too"


def test_without_a_driver_it_waits(containers: dict[str, dict[str, Any]]) -> None:
    words = {entry["name"]: entry["value"] for entry in containers["plugin"]["env"]}
    assert words["FAIL_ON_INIT_ERROR"] == "false"
    assert words["CONTAINER_DRIVER_ROOT"] == "/driver-root"
    mounts = {mount["mountPath"]: mount for mount in containers["plugin"]["volumeMounts"]}
    assert mounts["/driver-root"]["readOnly"] is True
    assert "readOnly" not in mounts["/var/lib/kubelet/device-plugins"], "its socket goes there"


def test_only_the_plugin_is_privileged(pod: dict[str, Any], containers: dict[str, dict[str, Any]]) -> None:
    assert [name for name, found in containers.items() if found["securityContext"].get("privileged")] == ["plugin"]
    assert containers["watcher"]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert all(found["securityContext"]["readOnlyRootFilesystem"] for found in containers.values())
    assert all(mount["readOnly"] for mount in containers["watcher"]["volumeMounts"])
    assert pod["automountServiceAccountToken"] is False


def test_every_mount_has_its_volume(pod: dict[str, Any], containers: dict[str, dict[str, Any]]) -> None:
    used = {mount["name"] for found in containers.values() for mount in found["volumeMounts"]}
    assert used == {volume["name"] for volume in pod["volumes"]}


def test_it_is_marked_as_ours_and_asks_for_little(containers: dict[str, dict[str, Any]]) -> None:
    assert rendered()["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "pai-install"
    assert all(found["resources"]["requests"] for found in containers.values())


def test_the_watcher_runs_the_script_of_the_add_on(containers: dict[str, dict[str, Any]]) -> None:
    assert containers["watcher"]["args"] == [SCRIPT.read_text()]


class Machine:
    """Folders that stand for a machine's, the watcher at work on them, and a process called as the plugin is."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        (folder / "host/dev").mkdir(parents=True)
        (folder / "host/usr/lib/x86_64-linux-gnu").mkdir(parents=True)
        # a name of its own: another test may run the same at the same time
        self.name = f"nv-{os.getpid()}"
        program = folder / self.name
        shutil.copy(shutil.which("sleep") or "", program)
        self.plugin = subprocess.Popen([str(program), "300"])
        script = SCRIPT.read_text().replace("/host/", f"{folder}/host/").replace("/sys/module", f"{folder}/module")
        script = script.replace("/proc/driver", f"{folder}/driver")
        script = script.replace("sleep 15", "sleep 0.2").replace("nvidia-device-p", self.name)
        self.watcher = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
        wait_for_pause(self.watcher.pid)

    def driver(self, version: str) -> None:
        """The driver's module and files are there."""
        (self.root / "module/nvidia").mkdir(parents=True, exist_ok=True)
        (self.root / "module/nvidia/version").write_text(f"{version}\n")
        (self.root / "host/dev/nvidia0").touch()
        (self.root / f"host/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{version}").touch()

    def end(self) -> None:
        """Ends both processes."""
        for process in (self.plugin, self.watcher):
            process.kill()
            process.wait()
        assert self.watcher.stdout is not None
        self.watcher.stdout.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Without a driver."""
    made = Machine(tmp_path)
    yield made
    made.end()


def test_the_plugin_is_ended_when_the_driver_comes(machine: Machine) -> None:
    machine.driver("580.1")
    assert machine.plugin.wait(timeout=60) == -15


def test_the_plugin_is_left_alone_while_nothing_changes(machine: Machine) -> None:
    (machine.root / "host/dev/null0").touch()
    with pytest.raises(subprocess.TimeoutExpired):
        machine.plugin.wait(timeout=1.5)


def test_the_plugin_is_ended_when_slices_of_gpus_change(machine: Machine) -> None:
    """A reconfiguration of MIG changes neither the driver nor a GPU's device file."""
    slices = machine.root / "driver/nvidia/capabilities/gpu0/mig"
    (slices / "gi1/ci0").mkdir(parents=True)
    assert machine.plugin.wait(timeout=60) == -15
