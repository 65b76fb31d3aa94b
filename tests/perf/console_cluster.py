"""A cluster in memory with 1,000 nodes and 10,000 jobs, for consoles that are measured or looked at.

`python -m tests.perf.console_cluster FOLDER` serves a console over it, as the image does: over TLS, with its sign-in.
FOLDER gets console.json, which says where, and ca.pem. Every fifth second a job appears whose name has the time.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from pai_install.cluster.client import Select, WatchEvent
from pai_install.console.connect import with_sign_in
from pai_install.console.memory import limit_memory
from pai_install.console.serve import serve
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import read_settings
from pai_install.console.sign_in.hashing import hashed
from pai_install.console.sign_in.service import open_sign_in
from pai_install.jobs.model import Job
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.profile.model import ClusterProfile
from pai_install.profile.project import profile_of
from pai_install.profile.publish import profile_object
from pai_install.schedulers.jobs import objects_of
from pai_install.schedulers.last_applied import kept_object
from pai_install.site.load import load_site
from pai_install.users.credentials import Credential, CredentialKind, secret_of
from pai_install.users.model import ADMIN, NAMESPACE
from tests.addons import ROOT
from tests.internet.authority import Authority
from tests.ports import free_port
from tests.unit.cluster.fake import ref_of, singular
from tests.unit.console.live import LiveClients, LiveCluster
from tests.unit.console.web_pages.conftest import account, member
from tests.unit.jobs.examples import role, somewhere
from tests.unit.jobs.sites import GROUPS, STORAGES
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import LAYOUT
from tests.unit.site.sites import write_site

JOBS, PODS_OF_JOB, NODES, GPUS, USERS = 10_000, 5, 1_000, 8, 200
SPACES, CLUSTERS, GROUP_OF = ("vision-1", "nlp"), ("research", "default"), ("Vision_1", "nlp")
GPU = "nvidia.com/gpu"
# of each 25 jobs: so many run, which use three of four GPUs, and so many wait
_RUNNING, _WAITING, _OF = 3, 4, 25
# GPUs of a node with a job
_BUSY = 6
_JOBSETS, _WORKLOADS = "jobsets.jobset.x-k8s.io", "workloads.kueue.x-k8s.io"
APPEARS_S = 5.0


# of all people: a sign-in costs as much as with different ones, and one hash is made at once
PASSWORD = "the password of all people"  # of tests


@functools.cache
def big_profile() -> ClusterProfile:
    """The site, with all nodes."""
    line = '  - {hostname: g3, hostip: 10.0.0.4, machine-type: a100, pai-worker: "true", labels: {rack: r2}}\n'
    assert line in LAYOUT
    more = "".join(
        line.replace("g3", _node_name(it)).replace("10.0.0.4", f"10.1.{it // 250}.{it % 250 + 1}")
        for it in range(NODES)
    )
    with tempfile.TemporaryDirectory() as folder:
        site = write_site(
            Path(folder) / "cluster", layout=LAYOUT.replace(line, line + more), services=VALID + GROUPS + STORAGES
        )
        return profile_of(load_site(site).site)


def _node_name(number: int) -> str:
    return f"gpu-{number}"


def _created(number: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_767_225_600 + 60 * number))


def phase_of(number: int) -> str:
    """Running, Pending, or Succeeded."""
    place = number % _OF
    return "Running" if place < _RUNNING else "Pending" if place < _RUNNING + _WAITING else "Succeeded"


@functools.cache
def _template() -> dict[str, Any]:
    return dict(objects_of(Job("made", (role("worker", PODS_OF_JOB, 1),), "research"), somewhere("kueue"))[0])


def job(number: int) -> dict[str, Any]:
    """A job of one of 200 users in two groups."""
    whole = _template()
    labels = {**whole["metadata"]["labels"], "pai-install/user": f"user{number % USERS}"}
    notes = {**whole["metadata"]["annotations"], "pai-install/job-name": f"job_{number}"}
    metadata = {"name": f"job-{number}", "namespace": SPACES[number % 2], "uid": f"job-uid-{number}", "labels": labels}
    ended = phase_of(number) == "Succeeded"
    return {
        **whole,
        "metadata": {**metadata, "annotations": notes, "creationTimestamp": _created(number)},
        "status": {"conditions": [{"type": "Completed", "status": "True"}]} if ended else {},
    }


def pods_of(number: int) -> Iterator[dict[str, Any]]:
    """Pods of a job as a kubelet reports them, with environments and volumes."""
    phase, running = phase_of(number), number // _OF * _RUNNING + number % _OF
    for index in range(PODS_OF_JOB):
        place = (running * PODS_OF_JOB + index) // _BUSY if phase == "Running" else number * PODS_OF_JOB + index
        yield _pod(number, index, phase, _node_name(place % NODES))


def _pod(number: int, index: int, phase: str, node: str) -> dict[str, Any]:
    labels = {
        "pai-install/user": f"user{number % USERS}",
        "jobset.sigs.k8s.io/jobset-name": f"job-{number}",
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number}-worker-0", "controller": True}
    environment = [{"name": f"PAI_VARIABLE_{it}", "value": "x" * 40} for it in range(60)]
    main = {"name": "main", "env": environment, "resources": {"limits": {GPU: "1"}}}
    state = {"running": {}} if phase == "Running" else {"terminated": {"exitCode": 0}}
    seen = {"name": "main", "state": state, "ready": phase == "Running", "restartCount": 0}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"job-{number}-worker-0-{index}-abcde",
            "namespace": SPACES[number % 2],
            "uid": f"pod-uid-{number}-{index}",
            "labels": labels,
            "creationTimestamp": _created(number),
            "ownerReferences": [owner],
        },
        "spec": {**({} if phase == "Pending" else {"nodeName": node}), "containers": [main]},
        "status": {
            "phase": phase,
            "startTime": _created(number),
            "podIP": "10.244.1.1",
            "conditions": [{"type": "Ready", "status": str(phase == "Running")}],
            "containerStatuses": [] if phase == "Pending" else [seen],
        },
    }


def node(number: int) -> dict[str, Any]:
    """A node with 8 GPUs. One of 50 is not ready, and one of 50 is cordoned."""
    ready = {"type": "Ready", "status": "False" if number % 50 == 7 else "True"}
    spec = {"unschedulable": True} if number % 50 == 11 else {}
    status = {"allocatable": {GPU: str(GPUS)}, "conditions": [ready]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _node_name(number)},
        "spec": spec,
        "status": status,
    }


def workload(number: int) -> dict[str, Any]:
    """What Kueue keeps of a job."""
    container = {"name": "main", "resources": {"limits": {GPU: "1"}}}
    words = {"Pending": [], "Running": ["QuotaReserved"], "Succeeded": ["QuotaReserved", "Finished"]}[phase_of(number)]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": f"jobset-job-{number}",
            "namespace": SPACES[number % 2],
            "uid": f"workload-uid-{number}",
            "ownerReferences": [{"kind": "JobSet", "name": f"job-{number}", "controller": True}],
        },
        "spec": {
            "queueName": CLUSTERS[number % 2],
            "podSets": [{"count": PODS_OF_JOB, "template": {"spec": {"containers": [container]}}}],
        },
        "status": {"conditions": [{"type": word, "status": "True"} for word in words]},
    }


def made(kind: str) -> Iterator[dict[str, Any]]:
    """All objects of a kind."""
    if kind == "pods":
        for number in range(JOBS):
            yield from pods_of(number)
    one = {_JOBSETS: job, _WORKLOADS: workload, "nodes": node}.get(kind)
    if one is not None:
        yield from map(one, range(NODES if kind == "nodes" else JOBS))


class _Nothing(list[Any]):
    """Keeps no calls: a console that is measured makes thousands."""

    def append(self, item: Any) -> None:
        del item


@dataclass
class BigCluster(LiveCluster):
    """Makes its many objects as a watch or a request asks for them, and keeps none. Other objects are kept."""

    calls: list[Any] = field(default_factory=_Nothing)

    def watch(self, select: Select) -> Iterator[WatchEvent]:
        for item in made(select.kinds[0]):
            yield WatchEvent("ADDED", item)
        yield from super().watch(select)

    def get(self, refs: Sequence[Ref]) -> tuple[JsonObject | None, ...]:
        return tuple(found or self._made(ref) for ref, found in zip(refs, super().get(refs), strict=True))

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        return tuple(
            (*found, *self._pods(select)) for select, found in zip(selects, super().list(*selects), strict=True)
        )

    @staticmethod
    def _made(ref: Ref) -> JsonObject | None:
        kind, (_, _, number) = singular(ref.kind), ref.name.rpartition("-")
        if not number.isdecimal():
            return None
        one = {"jobset": job, "job": job, "node": node}.get(kind)
        found = one(int(number)) if one is not None and int(number) < JOBS else None
        return found if found is not None and ref_of(found).name == ref.name else None

    @staticmethod
    def _pods(select: Select) -> Iterator[JsonObject]:
        """Pods of one job."""
        name = select.labels.rpartition("=")[2]
        if select.kinds[0] == "pods" and name.startswith("job-") and name[4:].isdecimal():
            yield from pods_of(int(name[4:]))


def site_objects() -> list[JsonObject]:
    """The site in the cluster. Another process reads its files: what that takes of memory, no console has."""
    words = [sys.executable, "-m", "tests.perf.console_cluster"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    found: list[JsonObject] = json.loads(done.stdout)
    return found


def big_cluster(*administrators: str) -> BigCluster:
    """The cluster, with accounts of all users."""
    cluster = BigCluster()
    cluster.put(*site_objects())
    for number in range(USERS):
        cluster.put(account(f"user{number}"), member(f"user{number}", GROUP_OF[number % 2], SPACES[number % 2]))
    for name in administrators:
        cluster.put(account(name), administration(name))
    return cluster


def administration(name: str) -> JsonObject:
    """The binding of an administrator."""
    subject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": name}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"admin-{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ADMIN},
        "subjects": [subject],
    }


def served(folder: Path) -> None:
    """Serves until a signal."""
    limit_memory()
    port = free_port()
    authority = Authority("console", folder)
    authority.serve(["localhost"])
    (folder / "ca.pem").write_text(authority.pem)
    (folder / "signing.key").write_text("5" * 64)
    pem, nothing = str(folder / "localhost.pem"), str(folder / "signing.key")
    files = {"signing_key": nothing, "api_authority": nothing, "api_token": nothing, "certificate": pem, "key": pem}
    whole = {"names": ["localhost"], "port": port, "http_port": None, "api_server": "https://api:6443", **files}
    (folder / "settings.json").write_text(json.dumps(whole))
    settings = read_settings(folder / "settings.json")
    cluster = big_cluster("root")
    roles = {f"user{it}": frozenset({SPACES[it % 2], "pai-templates"}) for it in range(USERS)}
    clients = LiveClients(cluster, {**roles, "root": None})
    data = {"hash": hashed(PASSWORD), "since": "2026-01-01T00:00:00+00:00"}
    for user in (*roles, "root"):
        uid = cluster.objects[Ref("serviceaccount", user, NAMESPACE)]["metadata"]["uid"]
        cluster.put(secret_of(Credential(CredentialKind.PASSWORD, user, user, uid, data=data)))
    sign_in = open_sign_in(settings, clients)
    sign_in.start()
    services = with_sign_in(settings, clients, sign_in, None)  # type: ignore[arg-type] # in memory
    services.model.load()
    Thread(target=_appear, args=(cluster,), daemon=True).start()
    Thread(target=_report, args=(services, folder / "console.json", f"https://localhost:{port}"), daemon=True).start()
    serve(settings, services)


def _report(services: ConsoleServices, path: Path, url: str) -> None:
    """Writes the address, as soon as the console has read all jobs and listens."""
    while not services.model.is_ready or len(services.model.jobs) < JOBS:
        time.sleep(0.1)
    path.with_suffix(".new").write_text(json.dumps({"url": url}))
    path.with_suffix(".new").rename(path)


def _appear(cluster: BigCluster) -> None:
    """Makes a job again and again whose name has the time."""
    for number in range(JOBS, 10 * JOBS):
        time.sleep(APPEARS_S)
        whole = job(number)
        whole["metadata"]["annotations"]["pai-install/job-name"] = f"at_{time.time():.3f}"
        cluster.put(whole)


@dataclass(frozen=True)
class BigConsole:
    """A console over the cluster, in a process of its own."""

    url: str
    authority: Path
    process: subprocess.Popen[bytes]


@contextmanager
def big_console(folder: Path) -> Iterator[BigConsole]:
    """Yields a console that knows all jobs."""
    words = [sys.executable, "-m", "tests.perf.console_cluster", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=ROOT)
    try:
        end = time.monotonic() + 300
        while not (folder / "console.json").exists():
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError((folder / "log").read_text())
            time.sleep(0.2)
        yield BigConsole(json.loads((folder / "console.json").read_text())["url"], folder / "ca.pem", process)
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        served(Path(sys.argv[1]))
    else:
        its = big_profile()
        sys.stdout.write(json.dumps([profile_object(its), kept_object(its.require_scheduling())]))
