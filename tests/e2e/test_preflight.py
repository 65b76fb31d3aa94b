"""Preflight on real machines: fit ones pass, each fault is found, and nothing on them is touched."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pai_install.lab.names import machine_names

from .conftest import PLANTED_SECRET, equip, lab_of, lab_site, on_machine, pai_install

pytestmark = pytest.mark.lab

SUBNET = "172.30.80"
MASTER, WORKER = "lab-master", "lab-worker1"
# what logging in and sudo themselves write, and the files of the services that run anyway
LEFT_BY_LOGIN = ("home/pai/.sudo_as_admin_successful", "var/log/", "var/lib/systemd/", "var/lib/sudo/", "var/tmp/")


@dataclass(frozen=True)
class Lab:
    """Two machines that nobody has installed anything on."""

    site: Path

    def preflight(self, *words: str) -> dict[str, Any]:
        """The report, with what was printed on stderr below `stderr`."""
        done = pai_install("preflight", "--site", str(self.site), "--format", "json", *words)
        assert done.stdout, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        assert report["exit_code"] == done.returncode
        return {**report, "stderr": done.stderr}

    def on(self, machine: str, command: str) -> str:
        """Runs a command as root on a machine; what it printed."""
        return on_machine(self.site, machine, command)

    def disk(self, machine: str) -> dict[str, str]:
        """Every file that a machine has of its own, as this host sees its disk: path -> mode, time and content."""
        spec = lab_of(self.site)
        root = machine_names(spec, spec.machine(machine)).disk
        found = {}
        for folder, _folders, files in os.walk(root):
            for name in files:
                path = Path(folder) / name
                short = path.relative_to(root).as_posix().removeprefix("upper/")
                if path.is_file() and not path.is_symlink() and not short.startswith(LEFT_BY_LOGIN):
                    state = path.stat()
                    content = hashlib.sha256(path.read_bytes()).hexdigest() if state.st_size < 1 << 20 else ""
                    found[short] = f"{state.st_mode:o} {state.st_mtime_ns} {state.st_size} {content}"
        return found


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A control plane and a worker, bare."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path_factory.mktemp("preflight"), SUBNET)
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().partition("  - hostname: lab-worker2")[0])
    equip(site)
    try:
        up = pai_install("lab", "up", "--site", str(site), "--yes")
        assert up.returncode == 0, up.stderr
        yield Lab(site)
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr


def failures(report: dict[str, Any]) -> dict[tuple[str, str], dict[str, str]]:
    """(machine, check) -> finding."""
    bad = [finding for finding in report["findings"] if finding["verdict"] == "FAIL"]
    return {(finding["subject"], finding["id"]): finding for finding in bad}


def test_fit_machines_pass_untouched(lab: Lab) -> None:
    before = {machine: lab.disk(machine) for machine in (MASTER, WORKER)}
    report = lab.preflight()
    assert failures(report) == {}, report
    assert set(report["machines"]) == {MASTER, WORKER}
    assert {machine: lab.disk(machine) for machine in (MASTER, WORKER)} == before
    passed = {finding["id"] for finding in report["findings"] if finding["verdict"] == "PASS"}
    assert passed >= {"sudo", "operating-system", "address", "peers", "packet-size", "clock", "ports", "disk-space"}


def test_a_machine_whose_host_key_nobody_recorded(lab: Lab) -> None:
    known = lab.site / ".pai" / "known_hosts"
    words = known.read_text()
    known.write_text("".join(line for line in words.splitlines(keepends=True) if WORKER not in line))
    try:
        report = lab.preflight("--limit", WORKER)
    finally:
        known.write_text(words)
    assert list(failures(report)) == [(WORKER, "host-key")], failures(report)


def test_everything_bad_is_found_at_once_and_nothing_is_touched(lab: Lab) -> None:
    spoil(lab)
    before = {machine: lab.disk(machine) for machine in (MASTER, WORKER)}
    report = lab.preflight()
    found = failures(report)
    assert set(found) == {
        (MASTER, "ports"),
        (MASTER, "disk-space"),
        (MASTER, "machine-id"),
        (WORKER, "machine-id"),
        (WORKER, "hostname"),
        (WORKER, "sudo"),
    }, report
    assert "6443/tcp (Kubernetes API): python3" in found[MASTER, "ports"]["value"]
    assert "0 B free" in found[MASTER, "disk-space"]["value"]
    assert (found[WORKER, "hostname"]["value"], found[WORKER, "hostname"]["expected"]) == ("gpu-07", WORKER)
    assert "sudo refuses the password" in found[WORKER, "sudo"]["message"]
    assert MASTER in found[WORKER, "machine-id"]["message"]
    assert all(finding["remedy"] for finding in found.values())
    swap = next(item for item in report["findings"] if item["id"] == "swap" and item["subject"] == WORKER)
    assert (swap["verdict"], "/swapfile" in swap["value"]) == ("WARN", True)
    assert {machine: lab.disk(machine) for machine in (MASTER, WORKER)} == before
    assert_forcing_is_named(lab, {check for _machine, check in found})
    assert_no_secret(lab, report)


def spoil(lab: Lab) -> None:
    """A port taken, a full disk, another name, another machine's id, a swap line, no sudo."""
    lab.on(MASTER, "nohup python3 -m http.server 6443 >/dev/null 2>&1 &")
    identity = lab.on(MASTER, "cat /etc/machine-id").strip()
    lab.on(
        WORKER,
        f"echo {identity} > /etc/machine-id; echo '/swapfile none swap sw 0 0' >> /etc/fstab; hostname gpu-07;"
        " gpasswd --delete pai sudo; mv /etc/sudoers.d /etc/sudoers.off",
    )
    fault = pai_install("lab", "fault", "--site", str(lab.site), MASTER, "disk-full")
    if fault.returncode != 0:
        pytest.skip(f"the controller host cannot fill a machine's disk: {fault.stderr}")


def assert_forcing_is_named(lab: Lab, checks: set[str]) -> None:
    """With every failing check forced the verdict is ready, and the report names them."""
    words = [word for check in sorted(checks) for word in ("--force-check", check)]
    forced = lab.preflight(*words)
    assert forced["ok"]
    assert forced["forced"] == sorted(checks)
    assert any(finding["message"].endswith("(forced)") for finding in forced["findings"])


def assert_no_secret(lab: Lab, report: dict[str, Any]) -> None:
    """The site's password is nowhere in what was printed or kept."""
    assert PLANTED_SECRET not in json.dumps(report)
    # read here: a command line with the secret would be found by the test that looks at those of the controller host
    kept = [path for path in (lab.site / ".pai").rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if PLANTED_SECRET.encode() in path.read_bytes()] == []
