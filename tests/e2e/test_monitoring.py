"""Monitoring on real machines with stand-ins for GPUs: switched on, each fault its alert and no other, switched off."""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from pai_install.monitoring.alertmanager import TEST
from pai_install.monitoring.dashboards import NODE, dashboards
from pai_install.parts.monitoring import FOLDER
from pai_install.ports import PROMETHEUS_PORT
from tests.web_hook import Hook, web_hook

from .conftest import Cluster, equip, fault, machines, pai_install, until

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.93"
MASTER, WELL, DEAD = MACHINES = ("lab-master", "lab-worker1", "lab-worker2")
RUNS = 3
# the kernel of the box says whether a clock is synchronised, and other work uses its processors
OF_THE_BOX = {
    "NodeCPUUsage",
    *({"NodeClock"} if ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(256)) == 5 else ()),
}
# a Deployment moves its pod away from a dead node within minutes
MOVES = "DeploymentIncomplete"
Record = Callable[[str, object], None]
ASK = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())"
HEAT = "sed -i 's/, {before}, /, {after}, /' /var/lib/pai-stand-in/metrics.csv"


@dataclass(frozen=True)
class Site:
    """The cluster, the receiver of its alerts, and the CPU seconds and tasks of runs before monitoring was on."""

    cluster: Cluster
    hook: Hook
    before: tuple[float, Mapping[str, int]]

    def prometheus(self, path: str) -> Any:
        """The data of an answer of Prometheus, which only its own machine gets."""
        url = f"http://127.0.0.1:{PROMETHEUS_PORT}/api/v1/{path}"
        return json.loads(self.cluster.on(MASTER, f'python3 -c "{ASK}" "{url}"'))["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression."""
        found: list[dict[str, Any]] = self.prometheus(f"query?query={quote(expression)}")["result"]
        return found

    def raised(self) -> set[tuple[str, str]]:
        """Name and node of each alert that fires or soon does, without those of the box."""
        labels = [alert["labels"] for alert in self.prometheus("alerts")["alerts"]]
        found = {(it["alertname"], it.get("node", "")) for it in labels if it["severity"] != "none"}
        return {(name, node) for name, node in found if name not in OF_THE_BOX}

    def told(self, status: str = "firing") -> set[tuple[str, str]]:
        """Name and node of each alert at the receiver, without those of the box."""
        return {(name, node) for name, node in self.hook.alerts(status) if name not in OF_THE_BOX}


def idle(cluster: Cluster) -> tuple[float, Mapping[str, int]]:
    """The least CPU seconds of some runs with nothing to do, and the tasks of each machine.

    Elapsed time would measure the other work of the box.
    """
    reports, seconds = [], []
    for _ in range(RUNS):
        before = os.times()
        reports.append(cluster.apply())
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert all(report["ok"] for report in reports), reports[0]["stderr"]
    changed = {host: counts["changed"] for report in reports for host, counts in report["hosts"].items()}
    assert changed == dict.fromkeys(MACHINES, 0)
    tasks = {host: counts["tasks"] for host, counts in reports[-1]["hosts"].items()}
    return min(seconds), tasks


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster without monitoring, then with it."""
    with machines(tmp_path_factory.mktemp("monitored"), SUBNET) as cluster, web_hook(f"{SUBNET}.1") as hook:
        done = cluster.apply()
        assert done["ok"], done["stderr"]
        before = idle(cluster)
        text = f"monitoring: {{web-hooks: [{{name: team, url: 'http://{SUBNET}.1:{hook.port}/'}}]}}\n"
        (cluster.site / "services-configuration.yaml").write_text(text)
        equip(cluster.site)
        done = cluster.apply()
        assert done["ok"], done["stderr"]
        yield Site(cluster, hook, before)


def wait_for(holds: Callable[[], object], seconds: float) -> float:
    """The seconds until something came true, which must be in time."""
    begin = time.monotonic()
    assert until(holds, seconds)
    return time.monotonic() - begin


def test_a_second_run_changes_nothing_and_costs_little(site: Site, record_property: Record) -> None:
    (seconds, tasks), (seconds_before, tasks_before) = idle(site.cluster), site.before
    record_property("CPU seconds without and with monitoring", (seconds_before, seconds))
    assert all(tasks[host] - tasks_before[host] <= 1 for host in MACHINES)
    assert seconds - seconds_before <= 0.3


def test_every_target_is_up(site: Site) -> None:
    def down() -> dict[str, str]:
        targets = site.prometheus("targets?state=active")["activeTargets"]
        return {it["scrapeUrl"]: it["lastError"] for it in targets if it["health"] != "up"}

    wait_for(lambda: not down(), 120)
    jobs = {series["metric"]["job"]: int(series["value"][1]) for series in site.query("count by (job) (up)")}
    assert (jobs["node"], jobs["kubelet"], jobs["kubelet-pods"]) == (3, 3, 3)
    assert jobs.keys() > {"apiserver", "etcd", "scheduler", "controller-manager", "kube-state", "alertmanager"}


def test_certificates_of_each_node_have_an_end(site: Site) -> None:
    expression = "min by (node) (pai_certificate_expires_timestamp_seconds) - time() > 86400"
    wait_for(lambda: {it["metric"]["node"] for it in site.query(expression)} == set(MACHINES), 120)


def test_each_panel_of_a_dashboard_shows_something(site: Site) -> None:
    panels = {(name, it.title): it for name, board in dashboards().items() for it in board.panels if not it.optional}
    wait_for(lambda: site.query('rate(node_cpu_seconds_total{mode="idle"}[5m])'), 120)
    asked = {
        (*place, legend): query.replace(NODE, WELL)
        for place, panel in panels.items()
        for legend, query in panel.queries.items()
    }
    assert {place for place, query in asked.items() if not site.query(query)} == set()


def test_a_healthy_lab_has_no_alert(site: Site) -> None:
    wait_for(lambda: not site.raised(), 120)
    assert site.told() == set()
    listed = json.loads(site.cluster.run("alerts", "list", "--format", "json").stdout)["alerts"]
    assert {alert["name"] for alert in listed} <= OF_THE_BOX


def test_a_test_alert_reaches_the_receiver(site: Site) -> None:
    assert site.cluster.run("alerts", "test").returncode == 0
    wait_for(lambda: (TEST, "") in site.told(), 60)
    site.hook.clear()


def test_a_machine_without_power_is_one_alert(site: Site, record_property: Record) -> None:
    fault(site.cluster.site, DEAD, "power-off")
    down = wait_for(lambda: ("MachineDown", DEAD) in site.told(), 240)
    # what comes later names the node, so that it stays silent
    assert {name for name, node in site.raised() if node != DEAD} <= {MOVES}
    assert site.told() == {("MachineDown", DEAD)}
    fault(site.cluster.site, DEAD, "heal")
    back = wait_for(lambda: ("MachineDown", DEAD) in site.told("resolved"), 120)
    record_property("seconds until told and until resolved", (down, back))
    wait_for(lambda: not site.raised(), 300)
    assert site.told() == {("MachineDown", DEAD)}
    site.hook.clear()


def test_each_fault_is_its_alert_and_no_other(site: Site, record_property: Record) -> None:
    """On one node a hot GPU and an Xid, on the other one a stopped kubelet."""
    cluster = site.cluster
    cluster.on(WELL, HEAT.format(before=35, after=96))
    done = pai_install("lab", "gpu", "--site", str(cluster.site), WELL, "xid-79")
    assert done.returncode == 0, done.stderr
    xid = wait_for(lambda: ("GpuXidFatal", WELL) in site.told(), 120)
    cluster.on(DEAD, "systemctl stop kubelet")
    try:
        hot = wait_for(lambda: ("GpuTooHot", WELL) in site.told(), 480)
        kubelet = wait_for(lambda: ("KubeletDown", DEAD) in site.told(), 480)
        record_property("seconds of Xid, temperature after it, kubelet after that", (xid, hot, kubelet))
        assert {name for name, node in site.raised() if node not in (WELL, DEAD)} <= {MOVES}
        assert site.told() == {("GpuXidFatal", WELL), ("GpuTooHot", WELL), ("KubeletDown", DEAD)}
        silence(site)
    finally:
        cluster.on(DEAD, "systemctl start kubelet")
        cluster.on(WELL, HEAT.format(before=96, after=35))
        pai_install("lab", "gpu", "--site", str(cluster.site), WELL, "healthy")
    wait_for(lambda: not site.raised(), 400)


def silence(site: Site) -> None:
    """Silences the node with the hot GPU: its alerts are no longer listed, the other node's are."""

    def listed() -> set[str]:
        found = json.loads(site.cluster.run("alerts", "list", "--format", "json").stdout)["alerts"]
        return {alert["subject"] for alert in found if alert["name"] not in OF_THE_BOX}

    assert listed() == {WELL, DEAD}
    assert site.cluster.run("alerts", "silence", WELL, "--hours", "0.5").returncode == 0
    wait_for(lambda: listed() == {DEAD}, 30)


def test_switched_off_leaves_the_data_alone(site: Site) -> None:
    cluster = site.cluster
    (cluster.site / "services-configuration.yaml").write_text("monitoring: false\n")
    effects = json.dumps(cluster.plan())
    assert FOLDER in effects
    assert cluster.apply()["ok"]
    assert cluster.to_change() == []
    assert cluster.ask("get", "namespace", "pai-monitoring").returncode != 0
    for kind in ("clusterroles", "clusterrolebindings"):
        assert "pai-monitoring" not in cluster.kubectl("get", kind, "-o", "name")
    remains = {host: cluster.on(host, LEFT).split() for host in MACHINES}
    assert remains == {MASTER: [FOLDER], WELL: [], DEAD: []}


PATHS = (
    "/usr/local/lib/pai-install/node_exporter",
    "/usr/local/lib/pai-install/node-metrics",
    "/etc/pai-install/node-exporter",
    "/etc/systemd/system/pai-node-exporter.service",
    "/etc/systemd/system/pai-node-metrics.*",
    "/var/lib/pai-metrics",
    FOLDER,
)
LEFT = f"pgrep -x node_exporter; pgrep -x prometheus; ls -d {' '.join(PATHS)} 2>/dev/null || :"
