"""Three control planes on real machines: any one may fail, also the first; more of them, fewer, all of them new."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pai_install.lab.keys import ssh_command
from tests.console_replicas import Person, Replicas, lost, names_of_jobs

from .conftest import ROOT, Cluster, equip, lab_of, lab_site, pai_install, shell_word, traces, until, user_environment
from .console_client import JOB, client_of

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.81"
MASTERS = ("ha-master1", "ha-master2", "ha-master3")
MACHINES = (*MASTERS, "ha-worker")
MORE = ("ha-master4", "ha-master5")
LAYOUT = f"""
machine-sku:
  small: {{mem: 1Gi, cpu: {{vcore: 1}}}}
  # more than the host has: these decide which jobs fit
  large: {{mem: 16Gi, cpu: {{vcore: 16}}}}
machine-list:
  - {{hostname: ha-master1, hostip: {SUBNET}.11, machine-type: small, pai-master: "true"}}
  - {{hostname: ha-master2, hostip: {SUBNET}.12, machine-type: small, pai-master: "true"}}
  - {{hostname: ha-master3, hostip: {SUBNET}.13, machine-type: small, pai-master: "true"}}
  - {{hostname: ha-worker, hostip: {SUBNET}.21, machine-type: large, pai-worker: "true"}}
"""
ADDED = f"""\
  # two more
  - {{hostname: ha-master4, hostip: {SUBNET}.14, machine-type: small, pai-master: "true"}}
  - {{hostname: ha-master5, hostip: {SUBNET}.15, machine-type: small, pai-master: "true"}}
"""
USER, PASSWORD = "boss", "the password of boss"
SERVICES = f"""\
scheduler: {{type: kueue}}
virtual-clusters:
  - {{name: default, quota: [{{sku: large, machines: 1}}], groups: [team]}}
rest-server: {{default-pai-admin-username: {USER}, default-pai-admin-password: {PASSWORD}}}
authentication:
  group-manager:
    admin-group: {{groupname: admins, extension: {{acls: {{admin: true}}}}}}
    default-group: {{groupname: default}}
    grouplist: [{{groupname: team}}]
"""
# comments of a stream come every 15 s: a client gives up a connection without one
SILENT_S = 20.0
# three disks for etcd are files on one disk of this host, which other work keeps busy: a fault of the stand-in
FORCED = ("--force-check", "etcd-disk")
# the API as a worker's own programs reach it
READY = "kubectl --kubeconfig /etc/kubernetes/kubelet.conf get --raw /readyz --request-timeout=15s"
# a client that watches its node as controllers do: a watch that ends begins again where it ended
WATCH = """
import json, subprocess, sys, time
get = ["kubectl", "--kubeconfig", "/etc/kubernetes/kubelet.conf", "get", "--raw"]
path = "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dha-worker&timeoutSeconds=600"
version, ticks, errors, ends = "", [], [], 0
print("watching", flush=True)
while "end" not in ticks:
    where = path + (version and "&resourceVersion=" + version)
    watch = subprocess.Popen([*get, where], stdout=subprocess.PIPE, text=True)
    for line in watch.stdout:
        event = json.loads(line)
        if event["type"] == "ERROR":
            errors.append(event["object"].get("message", ""))
            break
        version = event["object"]["metadata"]["resourceVersion"]
        tick = event["object"]["metadata"].get("annotations", {}).get("tick", "")
        ticks += [tick] if tick and tick not in ticks else []
        if tick == "end":
            break
    watch.kill()
    ends += 1
    time.sleep(0.2)
print(json.dumps({"ticks": ticks, "errors": errors, "watches": ends}))
"""
# process ids: they change with every restart
PROGRAMS = "pgrep -x etcd; pgrep -x kube-apiserver"


@pytest.fixture(scope="module")
def ha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three control planes and a worker; afterwards nothing of them may be left."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path_factory.mktemp("ha"), SUBNET)
    (site / "layout.yaml").write_text(LAYOUT)
    (site / "services-configuration.yaml").write_text(SERVICES)
    equip(site)
    up = pai_install("lab", "up", "--site", str(site), "--yes")
    try:
        assert up.returncode == 0, up.stderr
        yield Cluster(site, pai_install("apply", "--site", str(site), "--yes", *FORCED, timeout_s=4500))
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


def ready_nodes(cluster: Cluster) -> set[str]:
    """Names of the nodes that are Ready."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        node["metadata"]["name"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }


def test_three_control_planes_and_a_worker_are_ready(ha: Cluster) -> None:
    assert ha.quickstart.returncode == 0, ha.quickstart.stdout + ha.quickstart.stderr
    assert ready_nodes(ha) == set(MACHINES)


def test_etcd_has_a_member_on_each(ha: Cluster) -> None:
    pods = json.loads(ha.kubectl("--namespace", "kube-system", "get", "pods", "-l", "component=etcd", "-o", "json"))
    assert {pod["spec"]["nodeName"] for pod in pods["items"]} == set(MASTERS)


def test_the_key_for_secrets_at_rest_is_one(ha: Cluster) -> None:
    """Else an API server could not read what another one wrote."""
    keys = {ha.on(master, "sha256sum /etc/kubernetes/encryption/config.json") for master in MASTERS}
    assert len(keys) == 1


def test_second_apply_looks_once_and_changes_nothing(ha: Cluster) -> None:
    report = ha.apply()
    assert report["ok"], report["stderr"]
    assert {host: (counts["tasks"], counts["changed"]) for host, counts in report["hosts"].items()} == dict.fromkeys(
        MACHINES, (1, 0)
    )


def test_every_task_again_changes_nothing_and_restarts_nothing(ha: Cluster) -> None:
    before = {master: ha.on(master, PROGRAMS) for master in MASTERS}
    for machine in MACHINES:
        ha.on(machine, "rm -rf /var/lib/pai-install/roles")
    report = ha.apply()
    assert report["ok"], report["stderr"]
    assert {host: counts["changed"] for host, counts in report["hosts"].items()} == dict.fromkeys(MACHINES, 0)
    assert {master: ha.on(master, PROGRAMS) for master in MASTERS} == before


def test_the_first_control_plane_may_fail(ha: Cluster) -> None:
    """The one that made the cluster, serves the components and is in the kubeconfig."""
    fault = pai_install("lab", "fault", "--site", str(ha.site), MASTERS[0], "power-off")
    assert fault.returncode == 0, fault.stderr
    try:
        for _attempt in range(3):  # the proxy hands every request to another control plane
            began = time.monotonic()
            assert ha.on("ha-worker", READY).strip() == "ok"
            assert time.monotonic() - began < 20
        assert "ha-worker" in ha.kubectl("get", "nodes")
        report = ha.apply()
        assert report["exit_code"] == 5
        assert report["hosts"][MASTERS[0]]["unreachable"] == 1
        assert all(report["hosts"][host]["changed"] == 0 for host in MACHINES[1:])
        status = ha.run("status", "--format", "json")
        states = {machine["name"]: machine["state"] for machine in json.loads(status.stdout)["machines"]}
        assert status.returncode == 5
        assert states[MASTERS[0]] == "not reached"
        assert {states[host].partition(" at ")[0] for host in MACHINES[1:]} == {"node is Ready"}
    finally:
        healed = pai_install("lab", "fault", "--site", str(ha.site), MASTERS[0], "heal")
    assert healed.returncode == 0, healed.stderr
    assert well_again(ha)
    report = ha.apply()
    assert report["exit_code"] == 0, report["stderr"]
    assert ready_nodes(ha) == set(MACHINES)


def test_the_console_goes_on_without_a_control_plane(ha: Cluster, tmp_path: Path) -> None:
    """50 streams are open and jobs are submitted while the machine loses its power."""
    addresses = [str(lab_of(ha.site).machine(master).address) for master in MASTERS]
    authority = tmp_path / "ca.crt"
    identity = json.loads((ha.site / ".pai/registry.json").read_text())
    authority.write_text("".join(one["certificate"] for one in identity["authorities"]))
    console = client_of(ha.site, addresses[1])
    console.sign_in(USER, PASSWORD)
    console.submit(JOB.format(name="watched", command="while sleep 1; do date; done"))
    console.until(f"{USER}~watched", "RUNNING")
    place = f"/api/v2/jobs/{USER}~watched/attempts/0/taskRoles/main/taskIndex/0/attempts/0/logs"
    assert until(lambda: console.ask("GET", place)[0] == 200, 30)
    log = urlsplit(console.ask("GET", place)[1]["locations"][0]["uri"])
    watched = Person(USER, PASSWORD, console.token, "watched", f"{log.path}?{log.query}&follow=true")

    def lose() -> None:
        fault = pai_install("lab", "fault", "--site", str(ha.site), MASTERS[0], "power-off")
        assert fault.returncode == 0, fault.stderr

    def stop() -> None:
        path = f"/api/v2/jobs/{USER}~watched/executionType"
        assert console.ask("PUT", path, {"value": "STOP"})[0] == 202

    try:
        seen = asyncio.run(
            lost(
                Replicas([f"https://{address}" for address in addresses], authority, SILENT_S),
                watched,
                lambda name: JOB.format(name=name, command="true"),
                lose,
                stop,
            )
        )
    finally:
        healed = pai_install("lab", "fault", "--site", str(ha.site), MASTERS[0], "heal")
    assert healed.returncode == 0, healed.stderr
    assert max(seen.listed) < seen.within_s, seen
    assert max(seen.logs[1], seen.logs[2], *seen.changes.values()) < seen.within_s, seen
    assert seen.logs[0] < SILENT_S + seen.within_s, seen
    assert set(seen.answers) == names_of_jobs()
    # a job that the lost control plane made as a whole exists
    assert set(seen.answers.values()) <= {202, 409}, seen.refusals
    jobs = json.loads(ha.kubectl("get", "jobsets", "--all-namespaces", "--output=json"))["items"]
    names = [job["metadata"]["name"] for job in jobs]
    assert sorted(name for name in names if name != "watched") == sorted(names_of_jobs())
    ha.kubectl("delete", "jobsets", "--all", "--all-namespaces", "--timeout=120s")
    assert well_again(ha)


def well_again(cluster: Cluster) -> bool:
    """Whether all is well within three minutes: nodes are Ready before the pods on them are."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if cluster.run("status").returncode == 0:
            return True
        time.sleep(2)
    return False


def test_certificates_are_renewed_while_a_watch_goes_on(ha: Cluster) -> None:
    """Through the worker's own proxy: every change meanwhile is taken within seconds, and comes by the watch."""
    ha.kubectl("annotate", "node", "ha-worker", "tick-")
    watching = begin(ha, "ha-worker", f"python3 -c {shell_word(WATCH)}")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "watching\n"
    before = {master: ha.on(master, PROGRAMS) for master in MASTERS}
    renew = ["certs", "renew", "--site", str(ha.site), "--within", "400", "--yes"]
    made: list[str] = []
    with subprocess.Popen(
        [str(ROOT / "pai-install"), *renew], cwd=ROOT, env=user_environment(), stdin=subprocess.DEVNULL
    ) as renewing:
        while renewing.poll() is None:
            made.append(str(len(made)))
            words = ("annotate", "node", "ha-worker", f"tick={made[-1]}", "--overwrite", "--request-timeout=5s")
            # an API server that restarts answers no request that it had taken: clients ask again, and others answer
            assert until(lambda: ha.ask(*words).returncode == 0, 20), "the API was away"  # noqa: B023 - asked now
            time.sleep(0.5)
    ha.kubectl("annotate", "node", "ha-worker", "tick=end", "--overwrite")
    out, errors = watching.communicate(timeout=120)
    found = json.loads(out)
    assert renewing.returncode == 0
    assert found == {**found, "ticks": [*made, "end"], "errors": []}, errors
    assert all(ha.on(master, PROGRAMS) != before[master] for master in MASTERS), "nothing restarted"
    ha.kubectl("annotate", "node", "ha-worker", "tick-")


def test_backup_destroy_and_restore(ha: Cluster, tmp_path: Path) -> None:
    """etcd of all three is gone; afterwards the objects are there again, and three members."""
    file = tmp_path / "backup.tar.gz"
    ha.kubectl("create", "configmap", "before-backup", "--from-literal=a=1")
    assert ha.run("backup", str(file)).returncode == 0
    for master in MASTERS:
        ha.on(master, "rm -rf /var/lib/etcd/member; pkill -x etcd || true")
    restored = ha.run("restore", str(file), "--yes", timeout_s=1800)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert "configmap/before-backup" in ha.kubectl("get", "configmaps", "--output=name").split()
    assert members(ha) == set(MASTERS)
    assert well_again(ha)


def test_a_control_plane_leaves_and_another_machine_takes_its_place(ha: Cluster) -> None:
    """The first, dead and gone: its member and its node go, a machine that is installed anew joins under its name."""
    gone = MASTERS[0]
    identity = ha.kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
    alive = ha.run("node", "replace", gone, "--yes")
    assert alive.returncode == 4, "a machine that is alive is not replaced"
    fault = pai_install("lab", "fault", "--site", str(ha.site), gone, "power-off")
    assert fault.returncode == 0, fault.stderr
    assert until(lambda: gone not in ready_nodes(ha), 180)
    reinstall(ha, gone)
    replaced = ha.run("node", "replace", gone, "--accept-new", *FORCED, "--yes", timeout_s=1800)
    assert replaced.returncode == 0, replaced.stdout + replaced.stderr
    assert members(ha) == set(MASTERS)
    assert ha.kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}") == identity
    assert well_again(ha)


def test_three_become_five_and_three_again(ha: Cluster) -> None:
    layout = ha.site / "layout.yaml"
    before = layout.read_text()
    layout.write_text(before + ADDED)
    up = pai_install("lab", "up", "--site", str(ha.site), "--yes")
    assert up.returncode == 0, up.stderr
    added = ha.run("node", "add", *MORE, *FORCED, "--yes", timeout_s=1800)
    assert added.returncode == 0, added.stdout + added.stderr
    assert members(ha) == {*MASTERS, *MORE}
    assert ready_nodes(ha) == {*MACHINES, *MORE}
    assert ha.to_change() == []
    removed = ha.run("node", "remove", *MORE, "--force", f"--yes={','.join(MORE)}", timeout_s=1800)
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert members(ha) == set(MASTERS)
    assert ready_nodes(ha) == set(MACHINES)
    assert layout.read_text() == before + "  # two more\n"
    layout.write_text(before)
    report = ha.apply()
    assert report["ok"], report["stderr"]  # the others are told
    assert ha.to_change() == []


def test_three_become_one_and_one_becomes_three(ha: Cluster) -> None:
    """One member after the other leaves etcd, and what is left is a cluster that needs nothing; then they come back."""
    gone = MASTERS[:2]
    removed = ha.run("node", "remove", *gone, "--keep-in-layout", "--force", f"--yes={','.join(gone)}", timeout_s=1800)
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert members(ha) == {MASTERS[2]}
    report = ha.apply()
    assert report["ok"], report["stderr"]
    assert ready_nodes(ha) == {MASTERS[2], "ha-worker"}
    added = ha.run("node", "add", *gone, *FORCED, "--yes", timeout_s=1800)
    assert added.returncode == 0, added.stdout + added.stderr
    assert members(ha) == set(MASTERS)
    assert well_again(ha)
    assert ha.to_change() == []


def test_a_new_dev_box_takes_the_cluster_over(ha: Cluster, tmp_path: Path) -> None:
    """From the site's files and the key to the machines alone."""
    site = tmp_path / "lab"
    shutil.copytree(ha.site, site, ignore=shutil.ignore_patterns(".pai", "cut.*"))
    (site / ".pai").mkdir(mode=0o700)
    for name in ("lab_ssh_key", "lab_ssh_key.pub"):
        shutil.copy2(ha.site / ".pai" / name, site / ".pai" / name)
    other = Cluster(site, ha.quickstart)
    plan = other.run("plan", "--no-diff", "--accept-new", "--format", "json")
    assert plan.returncode == 0, plan.stderr
    assert "takes the cluster over" in plan.stderr
    report = other.apply()
    assert report["ok"], report["stderr"]
    # the kubeconfig comes from there
    assert {host: it["changed"] for host, it in report["hosts"].items()} == {
        **dict.fromkeys(MACHINES, 0),
        MASTERS[0]: 1,
    }
    assert ready_nodes(other) == set(MACHINES)
    assert ha.to_change() == [], "the old controller host has nothing to undo"


def test_all_machines_are_new_and_a_backup_brings_the_cluster_back(ha: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "backup.tar.gz"
    ha.kubectl("create", "configmap", "before-the-fire", "--from-literal=a=1")
    assert ha.run("backup", str(file)).returncode == 0
    for machine in MACHINES:
        reinstall(ha, machine)
    (ha.site / ".pai" / "known_hosts").unlink()
    restored = ha.run("restore", str(file), "--accept-new", *FORCED, "--yes", timeout_s=3600)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert "configmap/before-the-fire" in ha.kubectl("get", "configmaps", "--output=name").split()
    assert members(ha) == set(MASTERS)
    assert well_again(ha)
    assert ha.to_change() == []


def reinstall(cluster: Cluster, machine: str) -> None:
    """Gives a machine a new disk, as other hardware has."""
    done = pai_install("lab", "reinstall", "--site", str(cluster.site), machine, "--yes")
    assert done.returncode == 0, done.stderr


def begin(cluster: Cluster, machine: str, command: str) -> subprocess.Popen[str]:
    """Begins a command as root on a machine; its output is text."""
    spec = lab_of(cluster.site)
    words = ssh_command(spec, spec.machine(machine), [f"sudo sh -c {shell_word(command)}"])
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def members(cluster: Cluster) -> set[str]:
    """Names of etcd's members, by the word of the last control plane."""
    found = json.loads(cluster.on(MASTERS[2], "etcdctl member list --write-out=json"))
    return {member.get("name", "") for member in found["members"]}
