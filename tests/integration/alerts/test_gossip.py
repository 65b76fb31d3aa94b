"""Alertmanagers of several control planes on loopback, with the arguments and files of a site.

Each has an address of its own, and all have one port for gossip, as on machines. Tested: what they share, and whom they
refuse.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.monitoring.alertmanager import silence_program
from pai_install.monitoring.gossip import gossip_files
from pai_install.monitoring.routes import SECRETS
from pai_install.ports import ALERTMANAGER_PORT
from pai_install.registry.compile import served_names
from pai_install.registry.identity import Identity, Serving, make_identity
from pai_install.site import Site, load_site
from tests.addons import addon_action
from tests.integration.alerts.test_notifications import ROOT, manager_files
from tests.integration.control_plane import running
from tests.ports import free_ports
from tests.unit.site.sites import write_site
from tests.waiting import until
from tests.web_hook import Hook, web_hook

FIRST, SECOND, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"
# address -> certificate: the first two are on each worker, and the third one is exported for other programs
PURPOSES = ("collector", "exporter", "scraper", "logs", "another authority")
STRANGERS = {f"127.0.0.{number}": purpose for number, purpose in enumerate(PURPOSES, 4)}
ADDRESSES = (FIRST, SECOND, THIRD, *STRANGERS)
NOW = datetime.now(UTC)
# What takes longer otherwise. As on machines, the wait is shorter than the interval: one that waits has the alerts from
# before its wait, and would send them again after the first one sent their end.
WAIT_S, INTERVAL_S = 3, 10
FASTER = (
    f"--cluster.peer-timeout={WAIT_S}s",
    "--cluster.gossip-interval=50ms",
    "--cluster.reconnect-interval=1s",
    "--log.level=debug",
)


@dataclass
class Planes:
    """Control planes, each with an Alertmanager. webs: address -> port of its API."""

    program: Path
    folder: Path
    site: Site
    identity: Identity
    hook: Hook
    stack: ExitStack
    port: int
    webs: dict[str, int]
    started: dict[str, ExitStack] = field(default_factory=dict)

    def words(self, address: str) -> list[str]:
        """The arguments of the add-on."""
        given = ROOT / "addons/monitoring/tests/two_stores.input.yml"
        gossip = {"port": self.port, "peers": [f"{it}:{self.port}" for it in ADDRESSES]}
        values = {**yaml.safe_load(given.read_text())["values"], "alertmanager_port": self.webs[address]}
        objects = addon_action().objects_of(given.parents[1], {**values, "gossip": gossip}, ())
        (found,) = (it["spec"]["template"]["spec"] for it in objects if it["kind"] == "DaemonSet")
        replaced = {"/etc/alertmanager": "", SECRETS: "", "/data/alertmanager": "/data", "$(ADDRESS)": address}
        words: list[str] = found["containers"][0]["args"]
        for old, new in sorted(replaced.items(), reverse=True):
            words = [
                word.replace(old, new if old.startswith("$") else f"{self.folder}/{address}{new}") for word in words
            ]
        return words

    def start(self, address: str, identity: Identity | None = None) -> None:
        """Starts an Alertmanager. identity: whose certificate it has, the site's by default."""
        folder = self.folder / address
        folder.mkdir(exist_ok=True)
        manager_files(folder, self.site, f"{INTERVAL_S}s")
        for name, text in gossip_files(identity or self.identity).items():
            (folder / name).write_text(text)
        self.started[address] = ExitStack()
        self.stack.callback(self.started[address].close)
        words: list[str | Path] = [self.program, *self.words(address), *FASTER]
        self.started[address].enter_context(running(words, folder / "log"))

    def stop(self, address: str) -> None:
        """Kills it."""
        self.started[address].close()

    def ask(self, address: str, path: str, body: object = None) -> Any:
        """The answer of its API, None while it does not answer."""
        url = f"http://127.0.0.1:{self.webs[address]}/api/v2/{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                text = answer.read()
        except OSError:
            return None
        return json.loads(text) if text else None

    def members(self, address: str) -> set[str]:
        """Addresses of the members that it knows, once it is ready to send."""
        cluster = (self.ask(address, "status") or {}).get("cluster", {})
        if cluster.get("status") != "ready":
            return set()
        return {peer["address"].partition(":")[0] for peer in cluster["peers"]}

    def raise_alert(self, name: str, *addresses: str) -> None:
        """As the store of each of these control planes."""
        for address in addresses:
            self.ask(address, "alerts", [{"labels": {"alertname": name, "severity": "error", "node": "n1"}}])

    def silence(self, address: str) -> None:
        """As `alerts silence` does there."""
        program = silence_program("n1", datetime.now(UTC), 1, "me", "work")
        own = f"127.0.0.1:{self.webs[address]}"
        words = [word.replace(f"127.0.0.1:{ALERTMANAGER_PORT}", own) for word in program]
        subprocess.run(words, capture_output=True, check=True)

    def silences(self, address: str) -> list[str]:
        """The IDs of silences that it knows."""
        return [it["id"] for it in self.ask(address, "silences")]

    def log(self, address: str) -> str:
        """What it said."""
        return (self.folder / address / "log").read_text()


@pytest.fixture
def planes(alertmanager: Path, tmp_path: Path) -> Iterator[Planes]:
    """The first two run. The others are lost."""
    with ExitStack() as stack, web_hook() as hook:
        hooks = f"web-hooks: [{{name: t, url: 'http://127.0.0.1:{hook.port}/', token: s3cret}}]"
        services = f"monitoring: {{replicas: 2, {hooks}}}\nlogs: true\n"
        layout = (ROOT / "layouts/ha/layout.yaml").read_text()
        config = "user: pai\npassword: example\n"
        site = load_site(write_site(tmp_path / "site", layout=layout, config=config, services=services)).site
        port, *webs = free_ports(1 + len(ADDRESSES))
        identity = make_identity(served_names(site), NOW)
        made = Planes(
            alertmanager, tmp_path, site, identity, hook, stack, port, dict(zip(ADDRESSES, webs, strict=True))
        )
        for address in (FIRST, SECOND):
            made.start(address)
        until(lambda: all(made.members(it) == {FIRST, SECOND} for it in (FIRST, SECOND)))
        yield made


def pause(longer_s: int = 0) -> None:
    """Longer than an Alertmanager waits for another one. longer_s: what an interval takes, say."""
    time.sleep(WAIT_S + 2 + longer_s)


def test_an_alert_of_two_stores_is_one_notification_and_one_end(planes: Planes) -> None:
    planes.raise_alert("Hot", FIRST, SECOND)
    until(lambda: planes.hook.alerts("firing"))
    pause()
    assert planes.hook.alerts("firing") == [("Hot", "n1")]
    now = datetime.now(UTC).isoformat()
    for address in (FIRST, SECOND):
        ended = {"alertname": "Hot", "severity": "error", "node": "n1"}
        planes.ask(address, "alerts", [{"labels": ended, "endsAt": now}])
    until(lambda: planes.hook.alerts("resolved"))
    pause()
    assert planes.hook.alerts("resolved") == [("Hot", "n1")]
    assert len(planes.hook.got) == 2


@pytest.mark.parametrize("lost", [FIRST, SECOND])
def test_where_one_is_lost_the_other_one_sends(planes: Planes, lost: str) -> None:
    """The next one as well as what was sent already, which is not sent again."""
    (left,) = {FIRST, SECOND} - {lost}
    planes.raise_alert("Hot", FIRST, SECOND)
    until(lambda: planes.hook.alerts("firing"))
    pause()
    planes.stop(lost)
    planes.raise_alert("Down", left)
    until(lambda: ("Down", "n1") in planes.hook.alerts("firing"))
    pause(INTERVAL_S)
    assert planes.hook.alerts("firing") == [("Hot", "n1"), ("Down", "n1")]


def test_a_silence_of_one_is_known_by_all_also_by_one_that_starts_later(planes: Planes) -> None:
    planes.silence(FIRST)
    until(lambda: planes.silences(SECOND))
    planes.start(THIRD)
    until(lambda: planes.members(THIRD) == {FIRST, SECOND, THIRD})
    assert planes.silences(FIRST) == planes.silences(SECOND) == planes.silences(THIRD)
    assert len(planes.silences(THIRD)) == 1


def stolen(planes: Planes, purpose: str) -> Serving:
    """A certificate that is not one of Alertmanager's."""
    if purpose == "another authority":
        found = make_identity(served_names(planes.site), NOW).alertmanager
    else:
        found = getattr(planes.identity, purpose)
    assert isinstance(found, Serving)
    return found


def test_no_other_certificate_joins(planes: Planes) -> None:
    """At addresses of control planes that are lost, so that members also connect to them."""
    for address, purpose in STRANGERS.items():
        planes.start(address, planes.identity.model_copy(update={"alertmanager": stolen(planes, purpose)}))
    until(lambda: all(planes.members(it) for it in STRANGERS))
    for address in STRANGERS:
        planes.silence(address)
    # longer than the interval at which lost members are connected to again, from both sides
    time.sleep(17)
    assert {it: planes.members(it) for it in STRANGERS} == {it: {it} for it in STRANGERS}
    assert [planes.members(it) for it in (FIRST, SECOND)] == [{FIRST, SECOND}] * 2
    assert [planes.silences(it) for it in (FIRST, SECOND)] == [[], []]
    assert all("tls: " in planes.log(it) for it in STRANGERS)
    planes.silence(FIRST)
    until(lambda: planes.silences(SECOND))
    assert {len(planes.silences(it)) for it in STRANGERS} == {1}
