"""One cluster in the lab for all end-to-end tests of a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# a network of the tests' own: a lab that somebody works with stays as it is
SUBNET = "172.30.79"
PLANTED_SECRET = "planted-Secret-7f3a"


@dataclass(frozen=True)
class Cluster:
    """A site with a running cluster, and the command line to it."""

    site: Path
    quickstart: subprocess.CompletedProcess[str]

    def run(self, *words: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        """Runs `pai-install VERB --site SITE ...` as a user does."""
        return pai_install(words[0], "--site", str(self.site), *words[1:], timeout_s=timeout_s)

    def apply(self, *words: str) -> dict[str, Any]:
        """Applies; the report as JSON, with what was printed under `stderr`."""
        done = self.run("apply", "--yes", "--format", "json", *words)
        assert done.stdout, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        assert report["exit_code"] == done.returncode
        return {**report, "stderr": done.stderr}

    def plan(self) -> dict[str, Any]:
        """The plan as JSON, without differences."""
        done = self.run("plan", "--no-diff", "--format", "json")
        plan: dict[str, Any] = json.loads(done.stdout)
        return plan

    def on(self, machine: str, command: str) -> str:
        """Runs a command as root on a machine; what it printed."""
        done = pai_install("lab", "ssh", "--site", str(self.site), machine, "--", f"sudo sh -c {shell_word(command)}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kubectl(self, *words: str) -> str:
        """Runs kubectl; what it printed."""
        done = pai_install("kubectl", "--site", str(self.site), "--", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout


def shell_word(text: str) -> str:
    """`text` as one word of a remote shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def pai_install(*words: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
    """Runs the bootstrap script of this checkout, as a user does."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "ANSIBLE_CONFIG"}}
    return subprocess.run(
        [str(ROOT / "pai-install"), *words],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def lab_site(folder: Path, subnet: str) -> Path:
    """A copy of layouts/lab with other addresses and a password that must never be seen again."""
    site = folder / "lab"
    shutil.copytree(ROOT / "layouts" / "lab", site, ignore=shutil.ignore_patterns(".pai"))
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().replace("172.30.77.", f"{subnet}."))
    config = site / "config.yaml"
    config.write_text(config.read_text() + f"\npassword: {PLANTED_SECRET}\n")
    return site


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """quickstart from nothing; afterwards the lab is taken down, and nothing of it may be left."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path_factory.mktemp("site"), SUBNET)
    try:
        done = pai_install("quickstart", "--site", str(site), "--yes", timeout_s=4500)
        yield Cluster(site, done)
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


def traces(subnet: str) -> list[str]:
    """What a lab of that subnet left behind on this box: mounts, interfaces, network namespaces, processes."""
    dashes, digits = subnet.replace(".", "-"), "".join(f"{int(part):02x}" for part in subnet.split("."))
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    links = [path.name for path in Path("/sys/class/net").iterdir()]
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    processes = subprocess.run(["ps", "-e", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [
        *(path for path in mounts if f"lab/{dashes}" in path),
        *(name for name in links if digits in name),
        *(line for line in namespaces.splitlines() if f"{subnet}." in line),
        *(line for line in processes.splitlines() if f"{subnet}." in line),
    ]
