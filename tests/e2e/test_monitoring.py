"""Monitoring on real machines with stand-ins for GPUs: switched on, each fault its alert and no other, switched off."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from pai_install.monitoring.alertmanager import TEST
from pai_install.monitoring.dashboards import NODE, dashboards
from pai_install.parts.monitoring import FOLDER

from .conftest import KEPT, equip, fault, pai_install, until
from .monitored import (
    DEAD,
    MACHINES,
    MASTER,
    OF_THE_BOX,
    WELL,
    Site,
    authority,
    gateway,
    idle,
    kept_or_new,
    receivers,
    services,
    small_disk,
    trust,
)

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.93"
# a Deployment moves its pod away from a dead node within minutes
MOVES = "DeploymentIncomplete"
Record = Callable[[str, object], None]
METRICS = "/var/lib/pai-stand-in/metrics.csv"
# of the first GPU or all of them: temperature, uncorrected errors
HEAT = "sed -i 's/, {before}, /, {after}, /' " + METRICS
ECC = "sed -i '1s/0x0000000000000001, 0, {before}/0x0000000000000001, 0, {after}/' " + METRICS
USE = "/var/lib/pai-stand-in/use.csv"
FILL = "fallocate -l {mebibytes}M /mnt/small/fill && sync /mnt/small/fill"
PROGRAMS = ((MASTER, "prometheus"), (MASTER, "alertmanager"), (MASTER, "kube-state-metr"), (WELL, "node_exporter"))
KUEUE = ("--namespace=pai-kueue", "deployment/kueue-controller-manager")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster without monitoring, then with it, its receivers, and a small disk of the machine DEAD."""
    folder = tmp_path_factory.mktemp("monitored")
    with ExitStack() as stack:
        cluster = stack.enter_context(kept_or_new(folder, SUBNET))
        address = gateway(cluster)
        authority(folder, address)
        hook, mail = stack.enter_context(receivers(folder, address))
        before = None
        if not KEPT:
            (cluster.site / "services-configuration.yaml").write_text(services())
            equip(cluster.site)
            done = cluster.apply()
            assert done["ok"], done["stderr"]
            before = idle(cluster)
        trust(cluster, folder)
        (cluster.site / "services-configuration.yaml").write_text(services(address, hook.port, mail.port))
        equip(cluster.site)
        done = cluster.apply()
        assert done["ok"], done["stderr"]
        stack.enter_context(small_disk(cluster, DEAD, folder))
        yield Site(cluster, hook, mail, before)


def wait_for(holds: Callable[[], object], seconds: float) -> float:
    """The seconds until something came true, which must be in time."""
    begin = time.monotonic()
    assert until(holds, seconds)
    return time.monotonic() - begin


def test_a_second_run_changes_nothing_and_costs_little(site: Site, record_property: Record) -> None:
    if site.before is None:
        pytest.skip("a kept lab has monitoring already")
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
    assert jobs.keys() > {"apiserver", "etcd", "scheduler", "controller-manager", "kube-state", "alertmanager", "kueue"}


def test_certificates_of_each_node_have_an_end(site: Site) -> None:
    expression = "min by (node) (pai_certificate_expires_timestamp_seconds) - time() > 86400"
    wait_for(lambda: {it["metric"]["node"] for it in site.query(expression)} == set(MACHINES), 120)


def test_the_timer_of_certificates_comes_again(site: Site) -> None:
    """Each hour, and in seconds for this test."""
    shown = site.cluster.on(WELL, "systemctl show --property TimersMonotonic pai-node-metrics.timer")
    assert "OnUnitActiveUSec=1h ;" in shown
    folder = "/run/systemd/system/pai-node-metrics.timer.d"
    written = "[Timer]\nOnUnitActiveSec=\nOnActiveSec=1s\nOnUnitActiveSec=2s\nAccuracySec=100ms\n"
    again = "systemctl daemon-reload && systemctl restart pai-node-metrics.timer"
    site.cluster.on(WELL, f"mkdir -p {folder} && printf '{written}' > {folder}/fast.conf && {again}")
    try:
        seen: set[str] = set()

        def thrice() -> bool:
            seen.add(site.cluster.on(WELL, "stat -c %Y /var/lib/pai-metrics/hourly.prom"))
            return len(seen) >= 3

        wait_for(thrice, 60)
    finally:
        site.cluster.on(WELL, f"rm -r {folder} && {again}")


def test_each_panel_of_a_dashboard_shows_something(site: Site) -> None:
    panels = {(name, it.title): it for name, board in dashboards().items() for it in board.panels if not it.optional}
    wait_for(lambda: len(site.query("pai_node_cpu_busy_ratio and pai_node_written_bytes_rate")) == len(MACHINES), 240)
    asked = {
        (*place, legend): query.replace(NODE, WELL)
        for place, panel in panels.items()
        for legend, query in panel.queries.items()
    }
    assert {place for place, query in asked.items() if not site.query(query)} == set()


def test_a_healthy_lab_has_no_alert(site: Site) -> None:
    wait_for(lambda: not site.raised(), 180)
    assert (site.told(), site.mailed()) == (set(), set())
    listed = json.loads(site.cluster.run("alerts", "list", "--format", "json").stdout)["alerts"]
    assert {alert["name"] for alert in listed if alert["severity"] != "info"} <= OF_THE_BOX


def test_a_test_alert_reaches_all_receivers(site: Site) -> None:
    """Both have a certificate of an authority of the site."""
    assert site.cluster.run("alerts", "test").returncode == 0
    wait_for(lambda: (TEST, "") in site.told() and TEST in site.mailed(), 60)
    site.clear()


FIRST = {
    ("GpuXidFatal", WELL),
    ("GpuTooHot", WELL),
    ("NvidiaSmiDoubleEccError", WELL),
    ("KubeletDown", DEAD),
    ("NodeFilesystemUsage", DEAD),
}
SECOND = {
    ("NvidiaSmiHangs", WELL),
    ("NodeGpuCountChanged", DEAD),
    ("NodeFilesystemFull", DEAD),
    ("SchedulerDown", ""),
}


def test_each_fault_is_its_alert_and_no_other(site: Site, record_property: Record) -> None:
    """Meanwhile each program of the monitoring is killed at a random time."""
    cluster = site.cluster
    cluster.on(WELL, HEAT.format(before=35, after=96) + " && " + ECC.format(before=0, after=1))
    assert pai_install("lab", "gpu", "--site", str(cluster.site), WELL, "xid-79").returncode == 0
    cluster.on(DEAD, "systemctl stop kubelet; " + FILL.format(mebibytes=47))
    try:
        for machine, program in PROGRAMS:
            time.sleep(random.uniform(5, 50))  # noqa: S311 - no secret
            cluster.on(machine, f"pkill -9 -x {program}")
        told_all(site, FIRST, record_property)
        silence(site)
    finally:
        cluster.on(DEAD, "systemctl start kubelet")
        cluster.on(WELL, HEAT.format(before=96, after=35) + " && " + ECC.format(before=1, after=0))
        pai_install("lab", "gpu", "--site", str(cluster.site), WELL, "healthy")


def test_more_faults(site: Site, record_property: Record) -> None:
    cluster = site.cluster
    assert pai_install("lab", "gpu", "--site", str(cluster.site), WELL, "driver-hang").returncode == 0
    cluster.on(DEAD, f"sed -i.whole '$d' {USE} && " + FILL.format(mebibytes=53))
    cluster.kubectl("scale", *KUEUE, "--replicas=0")
    before = FIRST - {("NodeFilesystemUsage", DEAD)}
    try:
        told_all(site, FIRST | SECOND, record_property)
    finally:
        cluster.kubectl("scale", *KUEUE, "--replicas=1")
        cluster.on(DEAD, f"mv {USE}.whole {USE}; rm -f /mnt/small/fill")
        pai_install("lab", "gpu", "--site", str(cluster.site), WELL, "healthy")
    assert before <= site.told()
    wait_for(lambda: not site.raised(), 1200)  # uncorrected errors are an alert for a quarter of an hour
    wait_for(lambda: site.told("resolved") >= FIRST | SECOND, 400)
    wait_for(lambda: site.mailed("resolved") >= {name for name, _ in FIRST | SECOND}, 60)
    assert site.told() == FIRST | SECOND
    site.clear()


def told_all(site: Site, wanted: set[tuple[str, str]], record_property: Record) -> None:
    """Waits until exactly these alerts were told by web hook and mail, and records the seconds of each."""
    seen: dict[tuple[str, str], int] = {}
    begin = time.monotonic()

    def told() -> bool:
        for found in site.told():
            seen.setdefault(found, round(time.monotonic() - begin))
        return set(seen) >= wanted

    held = until(told, 600)
    record_property("seconds until told", sorted((name, node, after) for (name, node), after in seen.items()))
    assert held, wanted - set(seen)
    assert {name for name, node in site.raised() if node not in (WELL, DEAD)} <= {MOVES, "SchedulerDown"}
    assert site.told() == wanted
    wait_for(lambda: site.mailed() >= {name for name, _ in wanted}, 60)
    assert site.mailed() == {name for name, _ in wanted}


def silence(site: Site) -> None:
    """Silences the node with the hot GPU: its alerts are no longer listed, the other node's are."""

    def listed() -> set[str]:
        found = json.loads(site.cluster.run("alerts", "list", "--format", "json").stdout)["alerts"]
        return {alert["subject"] for alert in found if alert["name"] not in OF_THE_BOX | {MOVES}}

    assert listed() == {WELL, DEAD}
    assert site.cluster.run("alerts", "silence", WELL, "--hours", "0.01").returncode == 0
    wait_for(lambda: listed() == {DEAD}, 30)


def test_a_machine_without_power_is_one_alert(site: Site, record_property: Record) -> None:
    fault(site.cluster.site, DEAD, "power-off")
    down = wait_for(lambda: ("MachineDown", DEAD) in site.told() and "MachineDown" in site.mailed(), 240)
    # what comes later names the node, so that it stays silent
    assert {name for name, node in site.raised() if node != DEAD} <= {MOVES}
    assert site.told() == {("MachineDown", DEAD)}
    fault(site.cluster.site, DEAD, "heal")
    back = wait_for(lambda: ("MachineDown", DEAD) in site.told("resolved"), 120)
    record_property("seconds until told and until resolved", (down, back))
    wait_for(lambda: not site.raised(), 300)
    assert site.told() == {("MachineDown", DEAD)}
    site.clear()


def test_etcd_that_stops_is_an_alert_and_the_api_that_it_stops(site: Site, record_property: Record) -> None:
    wanted = {("EtcdMemberDown", ""), ("k8sApiServerNotOk", MASTER)}
    names = {name for name, _ in wanted}
    site.cluster.on(MASTER, "mv /etc/kubernetes/manifests/etcd.yaml /root/etcd.yaml")
    try:
        told = wait_for(lambda: site.told() >= wanted and site.mailed() >= names, 400)
        record_property("seconds until told of etcd", told)
    finally:
        site.cluster.on(MASTER, "mv /root/etcd.yaml /etc/kubernetes/manifests/etcd.yaml")
    assert (site.told(), site.mailed()) == (wanted, names)
    wait_for(lambda: site.told("resolved") >= wanted, 300)
    assert site.told() == wanted
    # controllers that lost the API start again, each time after a longer pause
    wait_for(lambda: not site.query('kube_pod_status_ready{condition="false", namespace=~"kube-.+|pai-.+"} == 1'), 600)


def test_switched_off_leaves_the_data_alone(site: Site) -> None:
    cluster = site.cluster
    (cluster.site / "services-configuration.yaml").write_text(services() + "monitoring: false\n")
    effects = json.dumps(cluster.plan())
    assert FOLDER in effects
    done = cluster.apply()
    assert done["ok"], done["stderr"]
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
LEFT = f"pgrep -x node_exporter; pgrep -x prometheus; pgrep -x alertmanager; ls -d {' '.join(PATHS)} 2>/dev/null || :"
