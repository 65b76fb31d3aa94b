"""Groups of people: storages that they are granted, volumes that they ask for, registries that they alone log in to."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pai_install.run.environment import cached_program, site_components
from pai_install.site import load_site

from .conftest import Cluster, lab_of, pai_install, until
from .job_site import CODE, DYNAMIC, ONE, OTHER, REGISTRY_ACCOUNT, REGISTRY_PASSWORD, REGISTRY_PORT
from .own_image import own_image
from .upstream import Upstream

pytestmark = pytest.mark.lab

PROVISIONER = "deployment/local-path-provisioner"
NAMESPACES = ("vision", "speech", "third")
REVOKED = "storageConfigs: [disk]"


@pytest.fixture(scope="module")
def registry(job_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    """One that asks for a login."""
    site = load_site(job_cluster.site).site
    program = cached_program(site, "registry")
    assert program is not None
    folder, login = tmp_path_factory.mktemp("registry"), f"robot:{REGISTRY_PASSWORD}"
    address = str(lab_of(job_cluster.site).gateway)
    found = Upstream(program, folder, address, REGISTRY_PORT, login, REGISTRY_ACCOUNT)
    found.start()
    try:
        busybox = site_components(site, lambda _line: None).image("busybox").layout
        found.push(own_image(busybox, found.folder / "image", "team/tool"), "team/tool", "1")
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="module")
def grouped(job_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster; without pods of the groups afterwards, and without what they wrote."""
    for machine in (ONE, OTHER):
        job_cluster.on(machine, f"mkdir -p /srv/pai-disk {CODE}")
    yield job_cluster
    for namespace in NAMESPACES:
        end_pods(job_cluster, namespace)
    for machine in (ONE, OTHER):
        job_cluster.on(machine, "rm -rf /srv/pai-scratch/* /srv/pai-disk/*")


def services_of(cluster: Cluster) -> Path:
    return cluster.site / "services-configuration.yaml"


def pod(
    cluster: Cluster, namespace: str, name: str, script: str, claim: str, image: str = "", node: str = ONE
) -> dict[str, Any]:
    """Runs a pod until it ends or waits for good; its status. node: a worker, or "" for the scheduler's choice."""
    image = image or cluster.on(ONE, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    container = {
        "name": "main",
        "image": image,
        "command": ["/bin/busybox", "sh", "-c", script],
        "volumeMounts": [{"name": claim, "mountPath": f"/mnt/{claim}"}] if claim else [],
    }
    place = {"nodeName": node} if node else {}
    spec = {**place, "restartPolicy": "Never", "containers": [container], "volumes": volumes}
    words = [f"--namespace={namespace}", "run", name, f"--image={image}", "--restart=Never"]
    cluster.kubectl(*words, f"--overrides={json.dumps({'spec': spec})}")
    return settled(cluster, namespace, name)


def settled(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    """The status of a pod that ended, or that cannot begin."""
    deadline = time.monotonic() + 300
    while True:
        status: dict[str, Any] = json.loads(
            cluster.kubectl("get", "pod", name, f"--namespace={namespace}", "--output=json")
        )["status"]
        if status["phase"] in ("Succeeded", "Failed") or reason(status) in ("ErrImagePull", "ImagePullBackOff"):
            return status
        if time.monotonic() > deadline:
            return status
        time.sleep(1)


def reason(status: dict[str, Any]) -> str:
    """Why the container waits."""
    (container,) = status.get("containerStatuses") or [{}]
    return str(container.get("state", {}).get("waiting", {}).get("reason", ""))


def said(cluster: Cluster, namespace: str, name: str) -> str:
    return cluster.kubectl("logs", name, f"--namespace={namespace}")


def claims(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Claim -> its phase, as kubectl shows it."""
    found = json.loads(cluster.kubectl("get", "persistentvolumeclaims", f"--namespace={namespace}", "--output=json"))
    return {
        it["metadata"]["name"]: "Terminating" if "deletionTimestamp" in it["metadata"] else it["status"]["phase"]
        for it in found["items"]
    }


def volumes_of(cluster: Cluster, namespace: str) -> set[str]:
    """The storages whose volumes are made for a group."""
    found = json.loads(cluster.kubectl("get", "persistentvolumes", "--output=json"))["items"]
    claimed = [it["spec"]["claimRef"] for it in found]
    return {claim["name"] for claim in claimed if claim["namespace"] == namespace}


def end_pods(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--grace-period=0", "--force")


def test_each_group_has_what_it_is_granted(grouped: Cluster) -> None:
    assert claims(grouped, "vision") == {"scratch": "Bound", "disk": "Bound"}
    assert claims(grouped, "speech") == {"scratch": "Bound", "shelf": "Bound"}
    assert claims(grouped, "third") == {}
    again = grouped.converge()
    assert sum(host["changed"] for host in again["hosts"].values()) == 0


def test_two_groups_share_a_storage_and_a_third_does_not(grouped: Cluster) -> None:
    assert pod(grouped, "vision", "writes", "echo from vision > /mnt/scratch/word", "scratch")["phase"] == "Succeeded"
    assert pod(grouped, "speech", "reads", "cat /mnt/scratch/word", "scratch")["phase"] == "Succeeded"
    assert said(grouped, "speech", "reads") == "from vision\n"
    assert pod(grouped, "vision", "keeps", "echo kept > /mnt/disk/word", "disk")["phase"] == "Succeeded"
    image = grouped.on(ONE, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    volumes = [{"name": "it", "persistentVolumeClaim": {"claimName": "scratch"}}]
    spec = {"containers": [{"name": "main", "image": image}], "volumes": volumes}
    words = ("--namespace=third", "run", "refused", f"--image={image}", "--restart=Never")
    grouped.kubectl(*words, f"--overrides={json.dumps({'spec': spec})}")
    deadline = time.monotonic() + 60
    while "not found" not in (why := waits_for(grouped, "third", "refused")):
        assert time.monotonic() < deadline, why
        time.sleep(1)
    assert 'persistentvolumeclaim "scratch" not found' in why


def waits_for(cluster: Cluster, namespace: str, name: str) -> str:
    """What the scheduler says of a pod."""
    found = json.loads(cluster.kubectl("get", "pod", name, f"--namespace={namespace}", "--output=json"))["status"]
    return " ".join(condition.get("message", "") for condition in found.get("conditions", ()))


def test_a_group_pulls_with_its_own_account(grouped: Cluster, registry: Upstream) -> None:
    image = f"{registry.address}:{registry.port}/team/tool:1"
    assert pod(grouped, "vision", "pulls", "echo pulled", "", image)["phase"] == "Succeeded"
    for machine in (ONE, OTHER):
        grouped.on(machine, f"crictl rmi {image} || true")
    refused = pod(grouped, "third", "pulls", "echo pulled", "", image)
    assert reason(refused) in ("ErrImagePull", "ImagePullBackOff"), refused
    # no machine has it: whoever is on one could pull with it
    assert grouped.on(ONE, f"grep -rlF {REGISTRY_PASSWORD} /etc /root /var/lib/kubelet 2>/dev/null || true") == ""


def storage(cluster: Cluster, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `pai-install storage VERB`."""
    return pai_install("storage", verb, "--site", str(cluster.site), *words)


def verdicts(done: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], list[str]]:
    """(Machine, check) -> verdicts of `storage test`, without those on the cluster."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in json.loads(done.stdout)["findings"]:
        found.setdefault((row["subject"], row["id"]), []).append(row["verdict"])
    return found


def test_every_worker_proves_its_storages_and_a_broken_one_is_named(grouped: Cluster) -> None:
    whole = storage(grouped, "test", "--size", "1", "--format", "json")
    assert whole.returncode == 0, whole.stdout + whole.stderr
    found = verdicts(whole)
    assert found[(ONE, "storage-use")] == ["PASS"] * 5
    assert found[(OTHER, "storage-use")] == ["PASS"] * 3, "disk and code are folders of the other"
    grouped.on(OTHER, "mv /srv/pai-scratch /srv/pai-scratch.away")
    try:
        broken = storage(grouped, "test", "--size", "1", "--format", "json")
    finally:
        grouped.on(OTHER, "mv /srv/pai-scratch.away /srv/pai-scratch")
    assert broken.returncode == 7, broken.stdout + broken.stderr
    found = verdicts(broken)
    assert found[(OTHER, "storage-mount")] == ["FAIL"]
    assert found[(ONE, "storage-use")] == ["PASS"] * 5
    assert grouped.kubectl("get", "pods", "-A", "-l", "pai-install/probe=storage", "-o", "name") == ""
    for machine in (ONE, OTHER):
        assert "pai-install-test" not in grouped.on(machine, "ls -A /srv/pai-scratch /srv/pai-disk")


def test_a_grant_by_command_reaches_the_cluster_and_goes_again(grouped: Cluster) -> None:
    before = services_of(grouped).read_text()
    granted = storage(grouped, "grant", "scratch", "--group", "third", "--apply", "--yes")
    assert granted.returncode == 0, granted.stdout + granted.stderr
    assert claims(grouped, "third") == {"scratch": "Bound"}
    shown = storage(grouped, "show", "scratch", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    assert {one["group"] for one in json.loads(shown.stdout)["grants"]} == {"Vision", "speech", "third"}
    end_pods(grouped, "third")
    revoked = storage(grouped, "revoke", "scratch", "--group", "third", "--apply", "--yes")
    assert revoked.returncode == 0, revoked.stdout + revoked.stderr
    assert services_of(grouped).read_text() == before


def test_what_is_taken_from_a_group_is_the_access(grouped: Cluster) -> None:
    services = services_of(grouped)
    services.write_text(services.read_text().replace("storageConfigs: [scratch, disk]", REVOKED))
    report = grouped.converge()
    assert report["ok"], report["stderr"]
    # a pod that ended holds its claim as one that runs; no new one starts with it
    assert claims(grouped, "vision") == {"scratch": "Terminating", "disk": "Bound"}
    services.write_text(services.read_text().replace(REVOKED, "storageConfigs: [scratch, disk]"))
    report = grouped.converge()
    assert not report["ok"]
    assert "still being deleted" in json.dumps(report["phases"])
    services.write_text(services.read_text().replace("storageConfigs: [scratch, disk]", REVOKED))
    end_pods(grouped, "vision")
    deadline = time.monotonic() + 60
    while set(claims(grouped, "vision")) != {"disk"}:
        assert time.monotonic() < deadline, claims(grouped, "vision")
        time.sleep(1)
    assert until(lambda: volumes_of(grouped, "vision") == {"disk"}, 60)
    assert claims(grouped, "speech")["scratch"] == "Bound"
    assert grouped.on(ONE, "cat /srv/pai-scratch/word") == "from vision\n"
    services.write_text(services.read_text().replace(REVOKED, "storageConfigs: [scratch, disk]"))
    assert grouped.converge()["ok"]
    assert pod(grouped, "vision", "returns", "cat /mnt/scratch/word", "scratch")["phase"] == "Succeeded"
    assert said(grouped, "vision", "returns") == "from vision\n"


def test_a_group_that_goes_leaves_its_people_what_is_theirs(grouped: Cluster) -> None:
    services = services_of(grouped)
    before = services.read_text()
    end_pods(grouped, "vision")
    grouped.kubectl("create", "configmap", "of-theirs", "--namespace=vision", "--from-literal=a=b")
    services.write_text(before.replace("groupname: Vision", "groupname: Other").replace("[Vision]", "[Other]"))
    report = grouped.converge()
    assert report["ok"], report["stderr"]
    assert grouped.kubectl("get", "configmap", "of-theirs", "--namespace=vision", "-o", "jsonpath={.data.a}") == "b"
    found = json.loads(grouped.kubectl("get", "namespace", "vision", "--output=json"))["metadata"]
    assert "pai-install" not in json.dumps([found["labels"], found.get("annotations", {})])
    assert until(lambda: not volumes_of(grouped, "vision"), 60)
    account = json.loads(grouped.kubectl("get", "serviceaccount", "default", "--namespace=vision", "--output=json"))
    assert "imagePullSecrets" not in account
    services.write_text(before)
    assert grouped.converge()["ok"]
    assert claims(grouped, "vision") == {"scratch": "Bound", "disk": "Bound"}
    assert grouped.to_change() == []
    grouped.kubectl("delete", "namespace", "other", "--wait=false")


def ask(cluster: Cluster, name: str, more: str = "") -> None:
    """A claim of the group speech that names no volume."""
    path = cluster.site / f"{name}.json"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    named = {**spec, "storageClassName": more} if more else spec
    metadata = {"name": name, "namespace": "speech"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": named}
    path.write_text(json.dumps(claim))
    cluster.kubectl("create", "--filename", str(path))


def folders(cluster: Cluster) -> str:
    """What is in the folders of dynamic volumes, on both workers."""
    return "".join(cluster.on(machine, "cat /srv/pai-volumes/*/word || true") for machine in (ONE, OTHER))


def test_a_claim_that_names_no_volume_gets_a_folder_until_it_is_deleted(grouped: Cluster) -> None:
    ask(grouped, "own")
    write = "id > /mnt/own/word; mkdir -m 0700 /mnt/own/deep; touch /mnt/own/deep/file"
    assert pod(grouped, "speech", "makes", write, "own", node="")["phase"] == "Succeeded"
    again = pod(grouped, "speech", "finds", "cat /mnt/own/word", "own", node="")
    assert again["phase"] == "Succeeded"
    assert said(grouped, "speech", "finds") == folders(grouped) != ""
    (machine,) = {name for name in (ONE, OTHER) if grouped.on(name, "ls /srv/pai-volumes || true")}
    assert grouped.on(machine, "stat -c %a /srv/pai-volumes") == "700\n"
    assert claims(grouped, "speech")["own"] == "Bound"
    end_pods(grouped, "speech")
    grouped.kubectl("delete", "persistentvolumeclaim", "own", "--namespace=speech")
    deadline = time.monotonic() + 60
    while grouped.on(machine, "ls /srv/pai-volumes") or "pvc-" in grouped.kubectl("get", "pv", "-o", "name"):
        assert time.monotonic() < deadline, grouped.kubectl("logs", "--namespace=pai-volumes", PROVISIONER)
        time.sleep(1)


@pytest.mark.soak
def test_volumes_outlive_the_class_that_made_them(grouped: Cluster) -> None:
    ask(grouped, "kept", "local-path-retain")
    assert pod(grouped, "speech", "keeps", "echo kept > /mnt/kept/word", "kept", node="")["phase"] == "Succeeded"
    services = services_of(grouped)
    before = services.read_text()
    services.write_text(before.replace(DYNAMIC, ""))
    report = grouped.converge()
    assert report["ok"], report["stderr"]
    assert grouped.kubectl("get", "storageclasses", "-o", "name") == ""
    assert "pai-volumes" not in grouped.kubectl("get", "namespaces", "--field-selector=status.phase=Active")
    assert pod(grouped, "speech", "still", "cat /mnt/kept/word", "kept", node="")["phase"] == "Succeeded"
    end_pods(grouped, "speech")
    volume = grouped.kubectl("get", "pvc", "kept", "--namespace=speech", "-o", "jsonpath={.spec.volumeName}")
    grouped.kubectl("delete", "pvc", "kept", "--namespace=speech")
    grouped.kubectl("delete", "pv", volume)
    assert folders(grouped) == "kept\n"


def test_no_password_is_in_what_runs_left_behind(grouped: Cluster) -> None:
    for path in (grouped.site / ".pai" / "runs").rglob("*"):
        assert not path.is_file() or REGISTRY_PASSWORD not in path.read_text(errors="replace"), path
