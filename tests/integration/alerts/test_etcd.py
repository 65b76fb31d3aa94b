"""Three members of etcd on loopback, and Prometheus that reads one of them: what it knows of a lost member."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pai_install.monitoring.rules import alerts
from pai_install.monitoring.scrape import Scraping, configuration
from pai_install.ports import ETCD_METRICS_PORT
from pai_install.site import load_site
from tests.integration.control_plane import running
from tests.perf.many_nodes import series, store_arguments
from tests.ports import free_ports
from tests.unit.site.sites import write_site

LOST = alerts()["control_plane"]["EtcdMemberDown"].when


# an election may go on
PATIENT = ("--command-timeout=60s", "--dial-timeout=30s")


class Members:
    """Members a, b, and c."""

    def __init__(self, programs: dict[str, Path], folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.clients, self.peers = (dict(zip("abc", free_ports(3), strict=True)) for _ in range(2))

    @contextmanager
    def member(self, name: str) -> Iterator[None]:
        client, peer = (f"http://127.0.0.1:{ports[name]}" for ports in (self.clients, self.peers))
        cluster = ",".join(f"{it}=http://127.0.0.1:{port}" for it, port in self.peers.items())
        words: list[str | Path] = [
            *(self.programs["etcd"], "--name", name, "--data-dir", self.folder / name, "--log-level", "error"),
            *("--listen-client-urls", client, "--advertise-client-urls", client, "--initial-cluster", cluster),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--unsafe-no-fsync"),
        ]
        with running(words, self.folder / f"{name}.log"):
            yield

    def call(self, *words: str) -> str:
        endpoint = f"127.0.0.1:{self.clients['a']}"
        command: list[str | Path] = [self.programs["etcdctl"], "--endpoints", endpoint, *PATIENT, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def until(url: str, *, lost: float | None) -> None:
    """Waits for the value of the expression while all members that it reads respond."""
    end = time.monotonic() + 60
    while True:
        found = [float(it["value"][1]) for it in series(url, LOST)]
        if series(url, 'up{job="etcd"} == 1') and found == ([] if lost is None else [lost]):
            return
        assert time.monotonic() < end, (found, lost)
        time.sleep(0.5)


@pytest.fixture
def members(programs: dict[str, Path], tmp_path: Path) -> Members:
    return Members(programs, tmp_path)


def test_a_lost_member_is_missed_until_it_is_back_or_removed(
    members: Members, prometheus: Path, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    site = load_site(write_site(tmp_path / "site", config="user: pai\npassword: example\n")).site
    made = configuration(site, Scraping(1, 9100), "")
    made["scrape_configs"] = [job for job in made["scrape_configs"] if job["job_name"] == "etcd"]
    made["rule_files"] = []
    text = json.dumps(made).replace(f":{ETCD_METRICS_PORT}", f":{members.clients['a']}")
    (tmp_path / "prometheus.yml").write_text(text)
    url = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        stack.enter_context(running([prometheus, *store_arguments(tmp_path, port, "1GB")], tmp_path / "prometheus.log"))
        stack.enter_context(members.member("b"))
        with members.member("a"):
            with members.member("c"):
                until(url, lost=None)
            until(url, lost=1)
            with members.member("c"):
                until(url, lost=None)
        # a member that never met the lost one
        stack.enter_context(members.member("a"))
        until(url, lost=1)
        (gone,) = (line.split(",")[0] for line in members.call("member", "list").splitlines() if ", c," in line)
        members.call("member", "remove", gone)
        until(url, lost=None)
