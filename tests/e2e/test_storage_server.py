"""A machine that the installer makes a storage server: mounted by the kubelets, by the groups that may, by no one else.

The lab's kernel has no NFS client: on two workers mount.nfs is mount_nfs_stand_in.py. All else is the real thing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ansible_path import module_util

from .conftest import EXISTING, LOST, SUBNET, Cluster, pai_install
from .test_groups import end_pods, said, services_of, settled, storage, verdicts, waits_for
from .test_storage_rotation import WRITES, copying, due, killed

pytestmark = [pytest.mark.lab, pytest.mark.soak]

FILES, ADDRESS = "lab-files", f"{SUBNET}.15"
FILES2, ADDRESS2 = "lab-files2", f"{SUBNET}.16"
ENTRY = "".join(
    f"""
  - hostname: {name}
    hostip: {address}
    machine-type: lab-master
    pai-storage: "true"
"""
    for name, address in ((FILES, ADDRESS), (FILES2, ADDRESS2))
)
GROUPS = """
authentication:
  group-manager:
    grouplist:
      - groupname: vision
        extension: {acls: {storageConfigs: [data, scratch, disk]}}
      - groupname: speech
        extension: {acls: {storageConfigs: [data, scratch, disk]}}
      - groupname: third
"""
STORAGES = f"""
storages:
  - {{name: scratch, type: hostPath, path: /srv/pai-scratch}}
  - {{name: disk, type: local, path: /srv/pai-disk, machine: {EXISTING}}}
  - name: data
    type: nfs
    server: {FILES}
    path: /share/data
"""
NAMESPACES = ("vision", "speech", "third")
STAND_IN = Path(__file__).with_name("mount_nfs_stand_in.py")
MOUNT = "/sbin/mount.nfs"
CUT = "nft add table inet no_nfs; nft add chain inet no_nfs out '{ type filter hook output priority 0; }'; "
CUT += "nft add rule inet no_nfs out tcp dport 2049 drop"


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a storage server beside it, and groups; without them again afterwards."""
    layout, services = cluster.site / "layout.yaml", services_of(cluster)
    before = layout.read_text()
    layout.write_text(before.rstrip() + ENTRY)
    services.write_text(GROUPS + STORAGES)
    for worker in (EXISTING, LOST):
        cluster.on(worker, "mkdir -p /srv/pai-scratch /srv/pai-disk")
    try:
        up = pai_install("lab", "up", "--site", str(cluster.site), "--yes")
        assert up.returncode == 0, up.stderr
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        for worker in (EXISTING, LOST):
            put_stand_in(cluster, worker)
        yield cluster
    finally:
        for namespace in NAMESPACES:
            end_pods(cluster, namespace)
        services.unlink()
        (cluster.site / ".pai" / "storages.json").unlink(missing_ok=True)
        layout.write_text(before)
        report = cluster.converge()
        cluster.kubectl("delete", "namespace", *NAMESPACES, "--ignore-not-found", "--wait=false")
        for worker in (EXISTING, LOST):
            cluster.on(worker, f"[ ! -e {MOUNT}.real ] || mv {MOUNT}.real {MOUNT}")
            cluster.on(worker, "rm -rf /srv/pai-scratch /srv/pai-disk")
    assert report["ok"], report["stderr"]
    assert cluster.kubectl("get", "persistentvolumes", "-o", "name") == ""
    assert cluster.to_change() == []


def put_stand_in(cluster: Cluster, worker: str) -> None:
    """Puts it in the place of the mount.nfs that the installer brought."""
    cluster.on(worker, "apt-get install --quiet --yes --no-install-recommends python3-fusepy libnfs14 libnfs-utils")
    cluster.on(
        worker, f"mv {MOUNT} {MOUNT}.real; cat > {MOUNT} <<'END'\n{STAND_IN.read_text()}\nEND\nchmod 755 {MOUNT}"
    )


def image_of(cluster: Cluster) -> str:
    return cluster.on(EXISTING, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]


def run(cluster: Cluster, namespace: str, name: str, script: str) -> str:
    """Runs a pod of a group with all three storages to its end; its phase."""
    claims = ("data", "scratch", "disk")
    container = {
        "name": "main",
        "image": image_of(cluster),
        "command": ["/bin/busybox", "sh", "-c", script],
        "volumeMounts": [{"name": claim, "mountPath": f"/mnt/{claim}"} for claim in claims],
    }
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    spec = {"nodeName": EXISTING, "restartPolicy": "Never", "containers": [container], "volumes": volumes}
    words = [f"--namespace={namespace}", "run", name, f"--image={container['image']}", "--restart=Never"]
    cluster.kubectl(*words, f"--overrides={json.dumps({'spec': spec})}")
    status = settled(cluster, namespace, name)
    return str(status["phase"])


def test_it_serves_and_is_no_node(served: Cluster) -> None:
    assert FILES not in served.kubectl("get", "nodes", "-o", "name")
    assert served.on(FILES, "stat --format %u:%a /share/data /share/users").split() == ["1000:777", "1000:775"]
    assert served.on(FILES, "ls /etc/kubernetes /usr/local/bin 2>/dev/null || true").split() == ["/usr/local/bin:"]
    again = served.converge()
    assert sum(host["changed"] for host in again["hosts"].values()) == 0
    status = json.loads(served.run("status", "--format", "json").stdout)
    (shown,) = [machine for machine in status["machines"] if machine["name"] == FILES]
    assert (shown["roles"], shown["drift"]) == (["storage"], [])


def test_two_groups_use_what_they_are_granted_and_a_third_does_not(served: Cluster) -> None:
    writes = "for it in data scratch disk; do echo from vision > /mnt/$it/word || exit 1; done"
    assert run(served, "vision", "writes", writes) == "Succeeded"
    assert run(served, "speech", "reads", "cat /mnt/data/word /mnt/scratch/word /mnt/disk/word") == "Succeeded"
    assert said(served, "speech", "reads") == "from vision\n" * 3
    assert served.on(FILES, "stat --format %u:%g /share/data/word; cat /share/data/word") == "1000:1000\nfrom vision\n"
    volumes = [{"name": "it", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = {"containers": [{"name": "main", "image": image_of(served)}], "volumes": volumes}
    words = ("--namespace=third", "run", "refused", f"--image={image_of(served)}", "--restart=Never")
    served.kubectl(*words, f"--overrides={json.dumps({'spec': spec})}")
    deadline = time.monotonic() + 60
    while 'persistentvolumeclaim "data" not found' not in (why := waits_for(served, "third", "refused")):
        assert time.monotonic() < deadline, why
        time.sleep(1)


def test_root_of_a_worker_is_not_root_on_the_server(served: Cluster) -> None:
    where = f"'nfs://{ADDRESS}/share/users/planted?version=4&uid=0&gid=0'"
    served.on(LOST, f"nfs-cp /etc/hostname {where}")
    assert served.on(FILES, "stat --format %u:%g /share/users/planted; rm /share/users/planted") == "1000:1000\n"
    outside = f"'nfs://{ADDRESS}/etc?version=4&uid=0&gid=0'"
    assert "NOENT" in served.on(LOST, f"nfs-ls {outside} 2>&1 || true")


def test_a_stranger_in_the_network_does_not_mount(served: Cluster) -> None:
    """The controller host is root, and in the machines' network."""
    del served
    assert module_util("pai_nfs").asked(ADDRESS, "/share/data") == {"answer": "missing", "why": "no such export"}


def test_a_pod_with_a_client_of_its_own_does_not_reach_the_server(served: Cluster) -> None:
    """It would come from its node's address, which may mount. What else the server offers it reaches, as everybody."""
    for port, phase in ((22, "Succeeded"), (2049, "Failed")):
        assert run(served, "vision", f"asks-{port}", f"busybox nc -w 5 {ADDRESS} {port} </dev/null") == phase


def test_a_worker_whose_mount_hangs_is_named(served: Cluster) -> None:
    began = time.monotonic()
    served.on(LOST, CUT)
    try:
        broken = storage(served, "test", "data", "--size", "1", "--timeout", "40", "--format", "json")
    finally:
        served.on(LOST, "nft delete table inet no_nfs")
    assert broken.returncode == 7, broken.stdout + broken.stderr
    found = verdicts(broken)
    assert found[(LOST, "storage-mount")] == ["FAIL"]
    assert found[(EXISTING, "storage-use")] == ["PASS"]
    assert time.monotonic() - began < 120
    assert served.kubectl("get", "pods", "-A", "-l", "pai-install/probe=storage", "-o", "name") == ""


def test_a_server_that_is_not_there_ends_the_run_before_a_volume_is_made(served: Cluster) -> None:
    services = services_of(served)
    before = services.read_text()
    gone = f"  - name: gone\n    type: nfs\n    server: {SUBNET}.250\n    path: /x\n"
    services.write_text(before.replace("[data, scratch, disk]", "[data, scratch, disk, gone]") + gone)
    line = services.read_text().splitlines().index(f"    server: {SUBNET}.250") + 1
    try:
        report = served.converge()
    finally:
        services.write_text(before)
    assert report["exit_code"] == 6
    assert f"services-configuration.yaml:{line}:5: {SUBNET}.250:/x: the server does not answer" in json.dumps(report)
    assert "gone" not in served.kubectl("get", "persistentvolumes", "-o", "name")
    report = served.converge()
    assert report["ok"], report["stderr"]


def start(cluster: Cluster, name: str, claim: str, script: str) -> None:
    """Makes a pod of vision with one storage, which is $0 in the script."""
    place = f"/mnt/{claim}"
    container = {
        "name": "main",
        "image": image_of(cluster),
        "command": ["/bin/busybox", "sh", "-c", script, place],
        "volumeMounts": [{"name": "it", "mountPath": place}],
    }
    volumes = [{"name": "it", "persistentVolumeClaim": {"claimName": claim}}]
    spec = {"nodeName": EXISTING, "restartPolicy": "Never", "containers": [container], "volumes": volumes}
    words = ["--namespace=vision", "run", name, f"--image={container['image']}", "--restart=Never"]
    cluster.kubectl(*words, f"--overrides={json.dumps({'spec': spec})}")


def becomes(cluster: Cluster, name: str, phase: str) -> None:
    """Waits for the phase of a pod of vision."""
    words = ("--namespace=vision", "wait", f"pod/{name}", f"--for=jsonpath={{.status.phase}}={phase}")
    cluster.kubectl(*words, "--timeout=120s")


def volumes_of(cluster: Cluster) -> set[str]:
    """The claims of vision on the servers' folder."""
    names = cluster.kubectl("get", "persistentvolumeclaims", "--namespace=vision", "--output=name").split()
    return {name.partition("/")[2] for name in names} - {"scratch", "disk"}


def test_a_rotation_to_a_server_that_is_not_there_changes_nothing(served: Cluster) -> None:
    services = services_of(served)
    before = services.read_text(), volumes_of(served)
    done = storage(served, "rotate", "data", "--server", f"{SUBNET}.250", "--copy", "--yes")
    assert done.returncode in (6, 7), done.stdout + done.stderr
    for worker in (EXISTING, LOST):
        assert f"FAIL {worker}: data cannot be mounted" in done.stdout
    assert (services.read_text(), volumes_of(served)) == before
    assert served.to_change() == []


def test_a_rotation_to_another_server_brings_the_data_and_loses_no_write_whenever_it_is_killed(served: Cluster) -> None:
    for server in (FILES, FILES2):
        served.on(server, "rm -rf /share/data/*")
    served.on(
        FILES,
        "mkdir -p /share/data/run && echo kept > /share/data/run/word && touch -d @1000000000 /share/data/run/word",
    )
    served.on(FILES, "chown -R 1000:1000 /share/data/run")
    start(served, "writer", "data", WRITES)
    becomes(served, "writer", "Running")
    killed(served, lambda it: it is not None, "--server", FILES2, "--copy", storage="data")
    killed(served, lambda it: due(it, "first") and copying(served), storage="data")
    killed(served, lambda _it: "data-g2" in volumes_of(served), storage="data")
    done = storage(served, "rotate", "data", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    start(served, "sees", "data-g2", 'busybox cat "$0/run/word" "$0/lines" && echo new > "$0/mine"')
    becomes(served, "sees", "Succeeded")
    word, *seen = said(served, "vision", "sees").split()
    assert word == "kept"
    assert seen == [str(number + 1) for number in range(len(seen))]
    assert served.on(FILES2, "cat /share/data/mine; stat -c %Y /share/data/run/word").split() == ["new", "1000000000"]
    assert volumes_of(served) == {"data", "data-g2"}
    served.on(FILES, "touch /share/data/stop")
    becomes(served, "writer", "Succeeded")
    done = storage(served, "rotate", "data", "--finish", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "both places have the same data" in done.stderr
    written = served.on(FILES, "cat /share/data/lines").split()
    assert written == [str(number + 1) for number in range(len(written))]
    assert len(written) > len(seen) > 0, "the last copy brought what came after the first"
    assert served.on(FILES2, "cat /share/data/lines").split() == written
    end_pods(served, "vision")
    deadline = time.monotonic() + 60
    while volumes_of(served) != {"data-g2"}:
        assert time.monotonic() < deadline
        time.sleep(1)
    assert served.to_change() == []
