"""A user of one group, with the kubeconfig that pai-install made: what the cluster gives it, and what it does not."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Cluster, kubectl_of, pai_install

pytestmark = pytest.mark.lab

SERVICES = """
authentication:
  group-manager:
    grouplist:
      - groupname: Vision
      - {groupname: speech, extension: {acls: {storageConfigs: [data]}}}
storages:
  - {name: data, type: hostPath, path: /srv/pai-of-speech}
"""
THEIR_VOLUME = ("get", "pvc", "data", "--namespace=speech", "--output=jsonpath={.spec.volumeName}")
NAMESPACES = ("vision", "speech")
SIGN = "openssl dgst -sha256 -sign /etc/kubernetes/pki/sa.key | base64 -w0"


@pytest.fixture(scope="module")
def grouped(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with two groups, and a pod of each; as it was again afterwards."""
    services = cluster.site / "services-configuration.yaml"
    before = services.read_text() if services.exists() else None
    services.write_text(SERVICES + (before or ""))
    try:
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        yield cluster
    finally:
        for name in ("alice", "bob"):
            user(cluster, "remove", name, "--yes")
        services.unlink() if before is None else services.write_text(before)
        report = cluster.converge()
        cluster.kubectl("delete", "namespace", *NAMESPACES, "pai-users", "--ignore-not-found", "--wait=false")
    assert report["ok"], report["stderr"]


@pytest.fixture(scope="module")
def files(grouped: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Alice of Vision and Bob of speech, and their kubeconfigs."""
    found = {}
    for name, group in (("alice", "Vision"), ("bob", "speech")):
        added = user(grouped, "add", name, "--group", group, "--yes")
        assert added.returncode == 0, added.stderr
        found[name] = tmp_path_factory.mktemp("users") / f"{name}.kubeconfig"
        made = user(grouped, "kubeconfig", name, "--days", "1", "--output", str(found[name]))
        assert made.returncode == 0, made.stderr
    return found


def user(cluster: Cluster, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    return pai_install("user", verb, "--site", str(cluster.site), *words)


def ask(cluster: Cluster, kubeconfig: Path, *words: str, entry: Any = None) -> subprocess.CompletedProcess[str]:
    """kubectl as the user."""
    program, _ = kubectl_of(cluster.site)
    return subprocess.run(
        [program, *words],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "KUBECONFIG": str(kubeconfig)},
        input=json.dumps(entry) if entry is not None else "",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def job(cluster: Cluster, owner: str, namespace: str, **more: Any) -> dict[str, Any]:
    """A job of one pod that sleeps."""
    image = cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[0].status.images[*].names[*]}")
    busybox = next(name for name in image.split() if "/busybox" in name)
    container = {"name": "main", "image": busybox, "command": ["/bin/busybox", "sleep", "600"]}
    labels = {"labels": {"pai-install/user": owner}}
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **more}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sleeps", "namespace": namespace, **labels},
        "spec": {"template": {"metadata": labels, "spec": spec}},
    }


def test_a_user_runs_a_job_of_its_own_and_reaches_nothing_of_another_group(
    grouped: Cluster, files: dict[str, Path]
) -> None:
    alice, bob = files["alice"], files["bob"]
    assert alice.stat().st_mode & 0o777 == 0o600
    for name, namespace in (("alice", "vision"), ("bob", "speech")):
        made = ask(grouped, files[name], "create", "-f", "-", entry=job(grouped, name, namespace))
        assert made.returncode == 0, made.stderr
        waited = grouped.ask("wait", "pod", "-n", namespace, "-l", "job-name=sleeps", "--for=create", "--timeout=30s")
        assert waited.returncode == 0, waited.stderr
    pod = ask(grouped, alice, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}").stdout
    theirs = ask(grouped, bob, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}").stdout
    assert (bool(pod), bool(theirs)) == (True, True)
    for words in (
        ("get", "pods", "-n", "speech"),
        ("get", "job/sleeps", "-n", "speech"),
        ("logs", theirs, "-n", "speech"),
        ("delete", "job/sleeps", "-n", "speech"),
        ("delete", "pod", theirs, "-n", "speech"),
        ("get", "pvc", "-n", "speech"),
        ("get", "secrets"),
        ("get", "secrets", "-n", "pai-users"),
        ("exec", pod, "--", "true"),
        ("get", "nodes"),
    ):
        refused = ask(grouped, alice, *words)
        assert "forbidden" in refused.stderr.lower(), (words, refused.stdout, refused.stderr)
    mounts = {"volumes": [{"name": "a", "hostPath": {"path": "/srv"}}]}
    for more, why in ((mounts, "volumes of users are"), ({"hostNetwork": True}, "no hostNetwork")):
        entry = job(grouped, "alice", "vision", **more)
        entry["metadata"]["name"] = "evil"
        refused = ask(grouped, alice, "create", "-f", "-", entry=entry)
        assert why in refused.stderr, refused.stderr
    mounts_theirs = {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]}
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}, "storageClassName": ""}
    for entry in (
        job(grouped, "alice", "speech", **mounts_theirs),
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {**claim, "volumeName": grouped.kubectl(*THEIR_VOLUME)},
        },
    ):
        refused = ask(grouped, alice, "create", "-f", "-", entry=entry)
        assert "forbidden" in refused.stderr.lower(), (entry["kind"], refused.stderr)
    assert ask(grouped, alice, "delete", "job/sleeps").returncode == 0
    assert grouped.kubectl("get", "job/sleeps", "-n", "speech", "-o", "name") == "job.batch/sleeps\n"


def test_an_apply_changes_nothing_of_users(grouped: Cluster, files: dict[str, Path]) -> None:
    assert grouped.to_change() == []
    listed = json.loads(user(grouped, "list", "--format", "json").stdout)["users"]
    assert [(one["name"], one["groups"], one["kubeconfigs"]) for one in listed] == [
        ("alice", ["Vision"], 1),
        ("bob", ["speech"], 1),
    ]
    assert ask(grouped, files["alice"], "get", "pods").returncode == 0


def test_a_token_ends_with_its_time(grouped: Cluster, files: dict[str, Path], tmp_path: Path) -> None:
    """The cluster's own key signs Alice's claims again: as they are they count, after their time they do not."""
    text = files["alice"].read_text()
    token = text.partition("token: ")[2].split()[0]
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    ends = {}
    for name, until in (("now", claims["exp"]), ("over", int(time.time()) - 60)):
        signed = f"{head}.{word({**claims, 'exp': until, 'nbf': claims['nbf'] - 86400, 'iat': claims['iat'] - 86400})}"
        signature = grouped.on("lab-master", f"printf %s {signed} | {SIGN}").strip()
        path = tmp_path / name
        path.write_text(text.replace(token, f"{signed}.{signature.rstrip('=').replace('+', '-').replace('/', '_')}"))
        ends[name] = ask(grouped, path, "get", "pods")
    assert ends["now"].returncode == 0, ends["now"].stderr
    assert "Unauthorized" in ends["over"].stderr or "must be logged in" in ends["over"].stderr


def word(claims: dict[str, Any]) -> str:
    """Claims as a token has them."""
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def test_who_was_removed_has_no_access_at_once(grouped: Cluster, files: dict[str, Path]) -> None:
    assert ask(grouped, files["bob"], "get", "pods").returncode == 0
    assert user(grouped, "remove", "bob", "--yes").returncode == 0
    assert ask(grouped, files["bob"], "get", "pods").returncode != 0
    assert user(grouped, "add", "bob", "--group", "speech", "--yes").returncode == 0
    deadline = time.monotonic() + 20
    while "must be logged in" not in (said := ask(grouped, files["bob"], "get", "pods").stderr):
        assert time.monotonic() < deadline, f"the old kubeconfig of a name that was given again: {said}"
        time.sleep(1)
