"""A user of one group, with the kubeconfig that pai-install made: what the cluster gives it, and what it does not."""

from __future__ import annotations

import base64
import getpass
import json
import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from .conftest import SERVE, Cluster, kubectl_of, pai_install, until
from .job_site import MASTER, ONE, OTHER, USER

pytestmark = pytest.mark.lab

# the administrator of OpenPAI's keys, and the one that `quickstart` adds
THEIRS = (USER, getpass.getuser())
THEIR_VOLUME = ("get", "pvc", "shelf", "--namespace=speech", "--output=jsonpath={.spec.volumeName}")
SIGN = "openssl dgst -sha256 -sign /etc/kubernetes/pki/sa.key | base64 -w0"


@pytest.fixture(scope="module")
def grouped(job_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster without a user; as it was again afterwards."""
    yield job_cluster
    for name in ("alice", "bob"):
        user(job_cluster, "remove", name, "--yes")
    for namespace in ("vision", "speech"):
        job_cluster.kubectl("delete", "jobs", "--all", f"--namespace={namespace}", "--timeout=60s")


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
    busybox = next(name for name in image.split() if name.startswith("registry.") and "/busybox" in name)
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
        waited = grouped.ask("wait", "pod", "-n", namespace, "-l", "job-name=sleeps", "--for=create", "--timeout=90s")
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
    mounts_theirs = {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "shelf"}}]}
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}, "storageClassName": ""}
    for entry in (
        job(grouped, "alice", "speech", **mounts_theirs),
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "shelf"},
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
    assert [(one["name"], one["groups"], one["kubeconfigs"]) for one in listed if one["name"] not in THEIRS] == [
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
    for name, end in (("now", claims["exp"]), ("over", int(time.time()) - 60)):
        signed = f"{head}.{word({**claims, 'exp': end, 'nbf': claims['nbf'] - 86400, 'iat': claims['iat'] - 86400})}"
        signature = grouped.on(MASTER, f"printf %s {signed} | {SIGN}").strip()
        path = tmp_path / name
        path.write_text(text.replace(token, f"{signed}.{signature.rstrip('=').replace('+', '-').replace('/', '_')}"))
        ends[name] = ask(grouped, path, "get", "pods")
    assert ends["now"].returncode == 0, ends["now"].stderr
    assert "Unauthorized" in ends["over"].stderr or "must be logged in" in ends["over"].stderr


def word(claims: dict[str, Any]) -> str:
    """Claims as a token has them."""
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def serving(cluster: Cluster, owner: str, namespace: str, machine: str) -> dict[str, Any]:
    """A job of one pod on a machine that serves over HTTP."""
    made = job(cluster, owner, namespace, nodeSelector={"kubernetes.io/hostname": machine})
    made["metadata"]["name"] = f"serves-{machine}"
    made["spec"]["template"]["spec"]["containers"][0]["command"] = [*SERVE]
    return made


@pytest.fixture(scope="module")
def servers(grouped: Cluster, files: dict[str, Path]) -> Iterator[dict[str, tuple[str, str]]]:
    """Two pods of vision and one of speech: name -> pod, address."""
    places = {"a1": ("alice", "vision", ONE), "a2": ("alice", "vision", OTHER), "b": ("bob", "speech", ONE)}
    found: dict[str, tuple[str, str]] = {}
    for name, (owner, namespace, machine) in places.items():
        made = ask(grouped, files[owner], "create", "-f", "-", entry=serving(grouped, owner, namespace, machine))
        assert made.returncode == 0, made.stderr
        of_job = (f"--namespace={namespace}", f"--selector=job-name=serves-{machine}")
        # kubectl waits for no pod that does not exist yet
        assert until(partial(grouped.kubectl, "get", "pods", *of_job, "--output=name"))
        grouped.kubectl("wait", "pod", *of_job, "--for=condition=Ready", "--timeout=90s")
        says = "jsonpath={.items[0].metadata.name} {.items[0].status.podIP}"
        pod, address = grouped.kubectl("get", "pods", *of_job, "--output", says).split()
        found[name] = f"--namespace={namespace} {pod}", address
    yield found
    for _, namespace, machine in places.values():
        grouped.ask("delete", "job", f"serves-{machine}", f"--namespace={namespace}", "--wait=false")


def reaches(cluster: Cluster, pod: str, address: str, port: int = 8080) -> bool:
    """Whether a connection from a pod is answered, with anything."""
    fetch = ("/bin/busybox", "sh", "-c", f"/bin/busybox nc -w 4 {address} {port} </dev/null >/dev/null")
    done = cluster.ask("exec", *pod.split(), "--", *fetch)
    assert "command terminated" in done.stderr or not done.returncode, done.stderr
    return done.returncode == 0


def test_a_pod_of_one_group_reaches_no_pod_of_another(grouped: Cluster, servers: dict[str, tuple[str, str]]) -> None:
    (a1, a1_address), (a2, a2_address), (b, b_address) = (servers[name] for name in ("a1", "a2", "b"))
    # both directions, on one machine and between two
    assert reaches(grouped, a1, a2_address)
    assert reaches(grouped, a2, a1_address)
    assert not reaches(grouped, a1, b_address)
    assert not reaches(grouped, a2, b_address)
    assert not reaches(grouped, b, a1_address)
    assert not reaches(grouped, b, a2_address)
    dns = grouped.kubectl("get", "service", "kube-dns", "-n", "kube-system", "-o", "jsonpath={.spec.clusterIP}")
    api = grouped.kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}")
    assert reaches(grouped, a1, dns, 53)
    assert reaches(grouped, a1, api, 443)
    master = grouped.on(MASTER, "hostname -I").split()[0]
    assert reaches(grouped, a1, master, 22)
    for port in (2379, 2380, 10250):
        assert not reaches(grouped, a1, master, port), port
        assert not reaches(grouped, b, grouped.on(ONE, "hostname -I").split()[0], port), port
    seen = f"import socket; socket.create_connection(('{a1_address}', 8080), 4)"
    grouped.on(MASTER, f'python3 -c "{seen}"')


def test_containers_have_no_raw_packets(grouped: Cluster, servers: dict[str, tuple[str, str]]) -> None:
    """With NET_RAW a pod sends with the address of any other pod of its node."""
    said = grouped.kubectl("exec", *servers["a1"][0].split(), "--", "/bin/busybox", "grep", "CapBnd", "/proc/1/status")
    assert int(said.split()[1], 16) & 1 << 13 == 0
    assert int(said.split()[1], 16) & 1 << 5, "what containerd gives otherwise stays"


def test_rules_are_back_after_another_program_removed_them(
    grouped: Cluster, servers: dict[str, tuple[str, str]]
) -> None:
    grouped.on(ONE, "nft delete table ip pai_groups")
    deadline = time.monotonic() + 30
    while reaches(grouped, servers["a1"][0], servers["b"][1]):
        assert time.monotonic() < deadline


@pytest.mark.soak
def test_a_site_may_let_groups_reach_each_other(grouped: Cluster, servers: dict[str, tuple[str, str]]) -> None:
    config = grouped.site / "config.yaml"
    before = config.read_text()
    config.write_text(f"{before}\ngroup_isolation: false\n")
    try:
        report = grouped.converge()
        assert report["ok"], report["stderr"]
        assert reaches(grouped, servers["a1"][0], servers["b"][1])
        assert "pai_groups" not in grouped.on(ONE, "nft list tables")
        assert grouped.to_change() == []
    finally:
        config.write_text(before)
        report = grouped.converge()
    assert report["ok"], report["stderr"]
    deadline = time.monotonic() + 30
    while reaches(grouped, servers["a1"][0], servers["b"][1]):
        assert time.monotonic() < deadline


def test_who_was_removed_has_no_access_at_once(grouped: Cluster, files: dict[str, Path]) -> None:
    assert ask(grouped, files["bob"], "get", "pods").returncode == 0
    assert user(grouped, "remove", "bob", "--yes").returncode == 0
    assert ask(grouped, files["bob"], "get", "pods").returncode != 0
    assert user(grouped, "add", "bob", "--group", "speech", "--yes").returncode == 0
    deadline = time.monotonic() + 20
    while "must be logged in" not in (said := ask(grouped, files["bob"], "get", "pods").stderr):
        assert time.monotonic() < deadline, f"the old kubeconfig of a name that was given again: {said}"
        time.sleep(1)
