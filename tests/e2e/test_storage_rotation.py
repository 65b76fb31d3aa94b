"""Storages that move while jobs write: not one write is lost, and no kill leaves anything half done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pai_install.site import load_site
from pai_install.site.rotations import StorageRotationState, read_rotations

from .conftest import EXISTING, ROOT, Cluster, pai_install, user_environment

pytestmark = pytest.mark.lab

SPACE = "movers"
OLD, NEW, MISSING, HAND = "/srv/pai-old", "/srv/pai-new", "/srv/pai-none", "/srv/pai-hand"
COPY, EXACT, SAFE = "/srv/pai-copy", "/srv/pai-exact", "/srv/pai-safe"
SERVICES = f"""
authentication:
  group-manager:
    default-group: {{groupname: default, extension: {{acls: {{storageConfigs: [attic]}}}}}}
    grouplist:
      - {{groupname: {SPACE}, extension: {{acls: {{storageConfigs: [shelf]}}}}}}
storages:
  - name: shelf   # for all
    type: hostPath
    path: {OLD}
  - {{name: attic, type: hostPath, path: {HAND}}}
"""
BY_HAND = f"""
apiVersion: v1
kind: PersistentVolume
metadata: {{name: attic-pv}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteMany]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  hostPath: {{path: {HAND}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: attic, namespace: default}}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: attic-pv
  resources: {{requests: {{storage: 1Gi}}}}
"""
# a line each second, by its number, until there is a file `stop`
WRITES = """
n=0
until [ -e "$0/stop" ]; do n=$((n+1)); echo $n >>"$0/lines"; busybox sleep 1; done
busybox rm "$0/stop"
"""


@pytest.fixture(scope="module")
def moving(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a group, a storage of its own, and one that was made by hand; without them afterwards."""
    workers = [machine.hostname for machine in load_site(cluster.site).site.workers]  # another test may have added one
    for machine in workers:
        cluster.on(machine, f"mkdir -p {OLD} {NEW} {HAND} {COPY} {EXACT} {SAFE}")
    kubectl_apply(cluster, BY_HAND)
    services_of(cluster).write_text(SERVICES)
    try:
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        yield cluster
    finally:
        cluster.kubectl("delete", "pods", "--all", f"--namespace={SPACE}", "--grace-period=0", "--force")
        services_of(cluster).unlink()
        report = cluster.converge()
        cluster.kubectl("delete", "namespace", SPACE, "--ignore-not-found", "--wait=false")
        (cluster.site / ".pai" / "storages.json").unlink(missing_ok=True)
        for machine in workers:
            cluster.on(machine, f"rm -rf {OLD} {NEW} {HAND} {COPY} {EXACT} {SAFE}")
    assert report["ok"], report["stderr"]
    within(60, lambda: cluster.kubectl("get", "persistentvolumes", "-o", "name") == "")


def services_of(cluster: Cluster) -> Path:
    return cluster.site / "services-configuration.yaml"


def kubectl_apply(cluster: Cluster, text: str) -> None:
    cluster.on("lab-master", f"KUBECONFIG=/etc/kubernetes/admin.conf kubectl apply -f - <<'END'\n{text}\nEND")


def within(seconds: float, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(1)


def rotate(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    return pai_install("storage", "rotate", "shelf", "--site", str(cluster.site), "--yes", *words)


def claims(cluster: Cluster) -> dict[str, str]:
    """Claim of the group -> its PV."""
    found = json.loads(cluster.kubectl("get", "persistentvolumeclaims", f"--namespace={SPACE}", "--output=json"))
    return {it["metadata"]["name"]: it["spec"]["volumeName"] for it in found["items"]}


def objects(cluster: Cluster) -> set[str]:
    """All PVs, PVCs and policies."""
    kinds = "persistentvolumes,persistentvolumeclaims,validatingadmissionpolicies"
    return set(cluster.kubectl("get", kinds, "--all-namespaces", "--output=name").split())


def start(cluster: Cluster, name: str, claim: str, script: str) -> subprocess.CompletedProcess[str]:
    """Makes a pod on a worker that runs a script with the mount as $0; whether the API took it."""
    image = cluster.on(EXISTING, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    container = {
        "name": "main",
        "image": image,
        "command": ["/bin/busybox", "sh", "-c", script, f"/mnt/{claim}"],
        "volumeMounts": [{"name": "it", "mountPath": f"/mnt/{claim}"}],
    }
    volumes = [{"name": "it", "persistentVolumeClaim": {"claimName": claim}}]
    spec = {"nodeName": EXISTING, "restartPolicy": "Never", "containers": [container], "volumes": volumes}
    words = [f"--namespace={SPACE}", "run", name, f"--image={image}", "--restart=Never"]
    overrides = f"--overrides={json.dumps({'spec': spec})}"
    return cluster.ask(*words, overrides)


def early(cluster: Cluster, claim: str) -> str:
    """What the API says to a pod that comes while the claim is closed."""
    return start(cluster, f"early-{time.time_ns()}", claim, "exit 0").stderr


def newest(cluster: Cluster) -> tuple[str, int]:
    """The claim that new jobs use, and its generation."""
    rotation = read_rotations(cluster.site).get("shelf")
    return (rotation.claim, rotation.generation) if rotation else ("shelf", 1)


def phase(cluster: Cluster, name: str) -> str:
    where = f"--namespace={SPACE}"
    return cluster.kubectl("get", "pod", name, where, "--ignore-not-found", "--output=jsonpath={.status.phase}")


def killed(cluster: Cluster, when: Callable[[Any], bool], *words: str, storage: str = "shelf") -> None:
    """Starts a rotation and kills it, without a warning, once its state is as asked for."""
    argv = [str(ROOT / "pai-install"), "storage", "rotate", storage, "--site", str(cluster.site), "--yes", *words]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(argv, cwd=ROOT, env=user_environment(), start_new_session=True, **quiet) as process:  # type: ignore[call-overload]
        deadline = time.monotonic() + 180
        while not when(read_rotations(cluster.site).get(storage)):
            assert process.poll() is None, "it ended before"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)


def test_what_an_admin_made_by_hand_is_taken_over_as_it_is(moving: Cluster) -> None:
    found = json.loads(moving.kubectl("get", "persistentvolumeclaim", "attic", "--output=json"))
    assert found["spec"]["volumeName"] == "attic-pv"
    assert found["metadata"]["labels"]["pai-install/storage"] == "attic"
    assert found["status"]["phase"] == "Bound"
    assert "persistentvolume/default-attic-g1" not in objects(moving)
    assert moving.to_change() == []


def test_a_place_that_is_missing_changes_nothing(moving: Cluster) -> None:
    before = services_of(moving).read_text(), objects(moving), (moving.site / ".pai" / "storages.json").read_text()
    done = rotate(moving, "--path", MISSING)
    assert done.returncode == 7, done.stdout + done.stderr
    assert "the worker does not have the folder" in done.stdout
    within(30, lambda: objects(moving) == before[1])
    after = services_of(moving).read_text(), objects(moving), (moving.site / ".pai" / "storages.json").read_text()
    assert after == before


def test_a_job_that_writes_each_second_loses_no_line_and_three_kills_change_nothing(moving: Cluster) -> None:
    assert start(moving, "writer", "shelf", WRITES).returncode == 0
    within(60, lambda: phase(moving, "writer") == "Running")
    killed(moving, lambda it: it is not None, "--path", NEW)
    killed(moving, lambda it: it.changes is None)
    killed(moving, lambda _it: "shelf-g2" in claims(moving))
    done = rotate(moving)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SPACE}/writer  shelf  {EXISTING}  Running" in done.stderr
    assert f"    path: {NEW}\n" in services_of(moving).read_text()
    assert claims(moving) == {"shelf": f"{SPACE}-shelf-g1", "shelf-g2": f"{SPACE}-shelf-g2"}
    assert start(moving, "reader", "shelf-g2", 'echo there >"$0/word"').returncode == 0
    within(60, lambda: phase(moving, "reader") == "Succeeded")
    assert moving.on(EXISTING, f"cat {NEW}/word") == "there\n"
    assert phase(moving, "writer") == "Running"
    assert moving.to_change() == []
    moving.on(EXISTING, f"touch {OLD}/stop")
    within(60, lambda: phase(moving, "writer") == "Succeeded")
    lines = moving.on(EXISTING, f"cat {OLD}/lines").split()
    assert lines == [str(number + 1) for number in range(len(lines))]
    done = rotate(moving, "--finish")
    assert done.returncode == 0, done.stdout + done.stderr
    moving.kubectl("delete", "pod", "writer", "reader", f"--namespace={SPACE}")
    within(60, lambda: claims(moving) == {"shelf-g2": f"{SPACE}-shelf-g2"})
    again = moving.converge()
    assert sum(host["changed"] for host in again["hosts"].values()) == 0


def here(cluster: Cluster) -> str:
    """The folder that new jobs use."""
    (shelf, _attic) = load_site(cluster.site).site.services.storages or ()
    return str(shelf.path)


def lines(cluster: Cluster, folder: str) -> list[str]:
    return cluster.on(EXISTING, f"cat {folder}/lines").split()


def numbers(count: int) -> list[str]:
    return [str(number + 1) for number in range(count)]


def stand_ins(cluster: Cluster) -> list[str]:
    """What stands for the places of a copy, and its pods."""
    kinds = "pods,persistentvolumes,persistentvolumeclaims"
    return cluster.kubectl(
        "get", kinds, "--all-namespaces", "-lpai-install/probe=storage-copy", "--output=name"
    ).split()


def due(rotation: StorageRotationState | None, which: str) -> bool:
    """Whether that copy is the next."""
    return rotation is not None and bool(rotation.older) and rotation.older[-1].copying == which


def copying(cluster: Cluster) -> bool:
    """Whether a pod copies."""
    return any(name.startswith("pod/") for name in stand_ins(cluster))


MADE = """
cd {folder} && rm -f lines && mkdir -p alice/run && echo secret >alice/run/key && chown -R 1234:2345 alice &&
chmod 700 alice && chmod 640 alice/run/key && ln -f alice/run/key same && ln -sfn alice/run to &&
truncate -s 8M holes && head -c 64M /dev/urandom >big
"""
SEEN = """
cd {folder} && stat -c '%n %a %u:%g %h %Y' alice alice/run alice/run/key same && readlink to && sha256sum big holes &&
[ $(stat -c %b holes) -lt 100 ] && [ alice/run/key -ef same ] && echo linked
"""


def test_a_copy_brings_the_data_along_while_a_job_writes_and_a_kill_stops_it(moving: Cluster) -> None:
    claim, generation = newest(moving)
    old, new = here(moving), f"shelf-g{generation + 1}"
    moving.on(EXISTING, MADE.format(folder=old))
    assert start(moving, "copied", claim, WRITES).returncode == 0
    within(60, lambda: phase(moving, "copied") == "Running")
    killed(moving, lambda it: due(it, "first") and copying(moving), "--path", COPY, "--copy")
    assert due(read_rotations(moving.site)["shelf"], "first")
    assert claims(moving).keys() == {claim, "pai-from-shelf", "pai-to-shelf"}, "no job hears of the new place yet"
    done = rotate(moving)
    assert done.returncode == 0, done.stdout + done.stderr
    assert start(moving, "sees", new, 'busybox cat "$0/alice/run/key" "$0/lines"; echo new >"$0/mine"').returncode == 0
    within(60, lambda: phase(moving, "sees") == "Succeeded")
    seen = moving.kubectl("logs", "sees", f"--namespace={SPACE}").split()
    assert seen == ["secret", *numbers(len(seen) - 1)]
    assert len(seen) > 1
    moving.on(EXISTING, f"touch {old}/stop")
    within(60, lambda: phase(moving, "copied") == "Succeeded")
    done = rotate(moving, "--finish")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{EXISTING}: both places have the same data" in done.stderr
    written = lines(moving, old)
    assert lines(moving, COPY) == written == numbers(len(written))
    assert len(written) > len(seen), "the last copy brought what came after the first"
    assert moving.on(EXISTING, f"cat {COPY}/mine") == "new\n"
    assert moving.on(EXISTING, SEEN.format(folder=COPY)) == moving.on(EXISTING, SEEN.format(folder=old))
    moving.kubectl("delete", "pod", "copied", "sees", f"--namespace={SPACE}")
    within(60, lambda: claims(moving) == {new: f"{SPACE}-shelf-g{generation + 1}"})
    assert stand_ins(moving) == []
    assert moving.to_change() == []


@pytest.mark.soak
def test_a_copy_with_the_same_name_is_exact_whenever_it_is_killed(moving: Cluster) -> None:
    claim, generation = newest(moving)
    old = here(moving)
    moving.on(EXISTING, MADE.format(folder=old))
    moving.on(EXISTING, f"echo once >{old}/passing")
    words = ("--path", EXACT, "--copy", "--same-name", "--timeout", "120")
    killed(moving, lambda it: due(it, "last"), *words)
    assert moving.on(EXISTING, f"cat {EXACT}/passing") == "once\n"
    moving.on(EXISTING, f"rm {old}/passing; echo later >{old}/word")
    killed(moving, lambda it: not it.older[-1].claimed and copying(moving))
    assert "is being replaced" in early(moving, claim)
    done = rotate(moving)
    assert done.returncode == 0, done.stdout + done.stderr
    assert claims(moving) == {claim: f"{SPACE}-shelf-g{generation + 1}"}
    assert moving.on(EXISTING, f"cat {EXACT}/word") == "later\n"
    kept = f"{EXACT}/.pai-install-copy/replaced-g{generation + 1}"
    assert moving.on(EXISTING, f"cat {kept}/passing") == "once\n"
    assert "passing" not in moving.on(EXISTING, f"ls {EXACT}").split()
    assert moving.on(EXISTING, SEEN.format(folder=EXACT)) == moving.on(EXISTING, SEEN.format(folder=old))
    assert stand_ins(moving) == []
    assert moving.to_change() == []


@pytest.mark.soak
def test_an_emergency_ends_the_pods_of_the_old_generation_and_new_jobs_run(moving: Cluster) -> None:
    claim, generation = newest(moving)
    assert start(moving, "leaking", claim, WRITES).returncode == 0
    within(60, lambda: phase(moving, "leaking") == "Running")
    done = rotate(moving, "--path", SAFE, "--emergency")
    assert done.returncode == 0, done.stdout + done.stderr
    new = f"shelf-g{generation + 1}"
    assert phase(moving, "leaking") == ""
    within(60, lambda: claims(moving) == {new: f"{SPACE}-shelf-g{generation + 1}"})
    assert start(moving, "late", claim, "exit 0").returncode == 0, "the API takes it, and it waits for a claim"
    assert start(moving, "safe", new, 'echo here >"$0/word"').returncode == 0
    within(60, lambda: phase(moving, "safe") == "Succeeded")
    assert moving.on(EXISTING, f"cat {SAFE}/word") == "here\n"
    assert phase(moving, "late") == "Pending"
    moving.kubectl("delete", "pod", "late", "safe", f"--namespace={SPACE}", "--grace-period=0", "--force")
    assert moving.to_change() == []


@pytest.mark.soak
def test_the_claim_keeps_its_name_where_that_is_asked_for(moving: Cluster) -> None:
    claim, generation = newest(moving)
    place = here(moving)
    there = OLD if place == NEW else NEW
    moving.on(EXISTING, f"echo moved >{there}/word")
    assert start(moving, "last", claim, 'busybox sleep 45; echo done >"$0/last"').returncode == 0
    within(60, lambda: phase(moving, "last") == "Running")
    argv = [str(ROOT / "pai-install"), "storage", "rotate", "shelf", "--site", str(moving.site), "--yes"]
    words = ["--path", there, "--same-name", "--timeout", "300"]
    with subprocess.Popen([*argv, *words], cwd=ROOT, env=user_environment(), stdin=subprocess.DEVNULL) as process:
        policy = f"validatingadmissionpolicy.admissionregistration.k8s.io/pai-storage-{claim}"
        within(120, lambda: policy in objects(moving))
        within(30, lambda: "is being replaced" in early(moving, claim))
        assert process.wait(timeout=300) == 0
    assert moving.on(EXISTING, f"cat {place}/last") == "done\n"
    assert claims(moving) == {claim: f"{SPACE}-shelf-g{generation + 1}"}
    assert start(moving, "first", claim, 'busybox cat "$0/word"').returncode == 0
    within(60, lambda: phase(moving, "first") == "Succeeded")
    assert moving.kubectl("logs", "first", f"--namespace={SPACE}") == "moved\n"
    left = f"{SPACE}-shelf-g{generation}"
    assert not [one for one in objects(moving) if "/pai-storage-" in one or one.endswith(left)]
    assert moving.to_change() == []
