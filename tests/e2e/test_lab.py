"""One real machine on a subnet of its own: made, used, broken, crashed, removed without a trace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_install import lab
from pai_install.errors import ExitCode, PaiError
from pai_install.lab.names import LABS_DIR, machine_names
from pai_install.lab.ready import greets
from pai_install.site import load_site
from pai_install.system.proc import Completed, run

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root"),
    pytest.mark.skipif(shutil.which("systemd-nspawn") is None, reason="systemd-nspawn is not installed"),
]

SUBNET = "172.30.78"
CODE = "ac1e4e"  # its first three numbers in hexadecimal, as interface names have them
LAYOUT = f"""
machine-sku:
  small: {{mem: 1Gi, cpu: {{vcore: 1}}}}
machine-list:
  - hostname: lab-test
    hostip: {SUBNET}.11
    machine-type: small
    pai-master: "true"
    pai-worker: "true"
"""


class Site:
    """A site folder and the command line on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "layout.yaml").write_text(LAYOUT)
        (folder / "config.yaml").write_text("user: pai\nssh_key_file_path: .pai/lab_ssh_key\n")

    def argv(self, *words: str) -> list[str]:
        verb, *rest = words
        return [sys.executable, "-m", "pai_install", "lab", verb, "--site", str(self.folder), *rest]

    def cli(self, *words: str, check: bool = True) -> Completed:
        package = str(Path(lab.__file__).parents[2])
        return run(self.argv(*words), check=check, env={**os.environ, "PYTHONPATH": package}, timeout_s=600)

    def ssh(self, *words: str, check: bool = True) -> str:
        return self.cli("ssh", "lab-test", "--", *words, check=check).stdout.strip()

    @property
    def spec(self) -> lab.LabSpec:
        return lab.spec_of(load_site(self.folder).site)

    def machine(self) -> lab.MachineStatus:
        return lab.status(self.spec).machines[0]

    def inject(self, fault: lab.Fault) -> str:
        return lab.inject(self.spec, self.spec.machines[0], fault)

    def heal(self) -> tuple[str, ...]:
        return lab.heal(self.spec, self.spec.machines[0])


def traces() -> list[str]:
    """Everything on the controller host that carries the test lab's names."""
    looks = {
        "mounts": Path("/proc/self/mounts").read_text(),
        "links": run(["ip", "-br", "link"]).stdout,
        "netns": run(["ip", "netns"]).stdout,
        "tables": run(["nft", "list", "tables"]).stdout,
        "loops": run(["losetup", "-a"], check=False).stdout,
        "cgroups": "\n".join(str(path) for path in Path("/sys/fs/cgroup").glob("**/pai-lab-*")),
        "folders": "\n".join(str(path) for path in LABS_DIR.glob("*")),
        "processes": run(["ps", "-eo", "stat,args"]).stdout,
    }
    words = (CODE, f"{SUBNET}.", f"{SUBNET.replace('.', '-')}-0")
    return [
        f"{kind}: {line}"
        for kind, text in looks.items()
        for line in text.splitlines()
        if any(word in line for word in words) and not line.startswith("Z")
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    assert traces() == []
    try:
        made.cli("up", "--yes")
        yield made
    finally:
        made.cli("down", "--yes")
    assert traces() == []
    assert [path.name for path in (made.folder / ".pai").iterdir()] == [".gitignore"]


def test_machine_is_whole(site: Site) -> None:
    report = site.ssh(
        "hostname; systemctl is-system-running; systemd-detect-virt; sudo -n id -u; systemctl --failed --quiet;"
        "findmnt -n -o FSTYPE /; findmnt -n -o FSTYPE /var/lib/docker; cat /etc/machine-id"
    ).splitlines()
    assert report[:6] == ["lab-test", "running", "systemd-nspawn", "0", "overlay", "ext4"]
    assert report[6] != Path("/etc/machine-id").read_text().strip()
    assert len(report) == 7


def test_up_again_changes_nothing(site: Site) -> None:
    document = json.loads(site.cli("up", "--yes", "--format", "json").stdout)
    assert document["changed"] == []
    assert document["ok"] is True


def test_status(site: Site) -> None:
    document = json.loads(site.cli("status", "--format", "json").stdout)
    found = document["machines"][0]
    assert (found["name"], found["state"], found["address"]) == ("lab-test", "running", f"{SUBNET}.11")
    assert found["memory_bytes"] > 1 << 20
    assert found["faults"] == []


def test_host_keys_are_checked(site: Site) -> None:
    known_hosts = site.folder / ".pai/known_hosts"
    text = known_hosts.read_text()
    known_hosts.write_text("")
    try:
        assert site.cli("ssh", "lab-test", "--", "true", check=False).returncode == 255
    finally:
        known_hosts.write_text(text)
    assert site.ssh("echo", "in") == "in"


def test_packages_install_from_the_boxs_archives(site: Site) -> None:
    site.ssh("sudo apt-get -q update && sudo apt-get -q -y --no-install-recommends install chrony")
    assert site.ssh("dpkg-query -W -f '${Status}' chrony") == "install ok installed"


def test_control_groups_are_writable(site: Site) -> None:
    made = "for d in /sys/fs/cgroup/memory /sys/fs/cgroup; do test -w $d/cgroup.procs && sudo mkdir $d/x && break; done"
    site.ssh(f"sudo sh -c '{made}; rmdir $d/x'")


@pytest.mark.parametrize("fault", [lab.Fault.PAUSE, lab.Fault.NET_CUT])
def test_fault_is_felt_seen_and_healed(site: Site, fault: lab.Fault) -> None:
    site.inject(fault)
    assert site.machine().faults == (fault.value,)
    assert not greets(site.spec.machines[0], timeout_s=0.3)
    assert site.heal() == (fault.value,)
    assert site.machine().faults == ()
    assert greets(site.spec.machines[0])


def test_slow_network(site: Site) -> None:
    done = site.cli("fault", "lab-test", "slow-net", check=False)
    if done.returncode == ExitCode.PREFLIGHT_FAILED:
        pytest.skip(done.stderr)
    assert site.machine().faults == ("slow-net",)
    began = time.monotonic()
    site.ssh("head -c 100000 /dev/urandom | base64")
    slow = time.monotonic() - began
    assert "slow-net" in site.cli("fault", "lab-test", "heal").stdout
    assert site.machine().faults == ()
    assert slow > 0.8  # 1 Mbit/s at best, or 100 ms for every turn


def test_full_disk(site: Site) -> None:
    image = machine_names(site.spec, site.spec.machines[0]).image
    before = image.stat().st_blocks if image.exists() else 0  # a host without loop devices has none, and no fault
    try:
        site.inject(lab.Fault.DISK_FULL)
    except PaiError as error:
        pytest.skip(error.message)
    write = "for d in /var/tmp /var/lib/docker; do sudo dd if=/dev/zero of=$d/x bs=8k count=1 && exit 9; done; exit 4"
    assert site.cli("ssh", "lab-test", "--", write, check=False).returncode == 4
    # it takes no space of the host
    assert (image.stat().st_blocks - before) * 512 < 1 << 30
    site.heal()
    site.ssh("sudo dd if=/dev/zero of=/var/tmp/x bs=8k count=1")


def test_power_off_keeps_the_disk(site: Site) -> None:
    site.ssh("sudo touch /root/kept")
    site.inject(lab.Fault.POWER_OFF)
    assert site.machine().state == "stopped"
    assert site.heal() == ("power-off",)
    site.ssh("sudo test -e /root/kept")


def test_installed_anew_it_has_another_disk_host_key_and_machine_id(site: Site) -> None:
    site.ssh("sudo touch /root/kept /var/lib/docker/kept; sudo ip link add kept0 type bridge")
    before = site.ssh("cat /etc/machine-id")
    site.cli("reinstall", "lab-test", "--yes")
    assert site.cli("ssh", "lab-test", "--", "true", check=False).returncode == 255, "the site has the old host key"
    assert site.heal() == ()
    assert site.ssh("sudo ls /root /var/lib/docker") == "/root:\n\n/var/lib/docker:"
    assert "kept0" not in site.ssh("ip -brief link")
    assert site.ssh("cat /etc/machine-id") != before
    assert json.loads(site.cli("up", "--yes", "--format", "json").stdout)["changed"] == []


def test_reboot_from_inside(site: Site) -> None:
    boot = "cat /proc/1/stat"
    before = site.ssh(boot)
    site.ssh("sudo systemctl reboot", check=False)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        after = site.ssh(boot, check=False)
        if after and after.split()[21] != before.split()[21]:
            return
        time.sleep(0.3)
    pytest.fail("did not come back")


def test_a_killed_up_is_found_and_finished(site: Site) -> None:
    for delay in (0.9, 1.3):
        site.cli("down", "--yes")
        assert traces() == []
        package = str(Path(lab.__file__).parents[2])
        with subprocess.Popen(
            site.argv("up", "--yes"), env={**os.environ, "PYTHONPATH": package}, stderr=subprocess.DEVNULL
        ) as child:
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
        if delay < 1:
            site.cli("down", "--yes")
            assert traces() == []
    site.cli("up", "--yes")
    assert site.ssh("echo", "whole") == "whole"


def test_broken_site_files_do_not_keep_a_lab_alive(site: Site) -> None:
    layout = site.folder / "layout.yaml"
    layout.write_text("{")
    try:
        site.cli("down", "--yes")
        assert traces() == []
    finally:
        layout.write_text(LAYOUT)
