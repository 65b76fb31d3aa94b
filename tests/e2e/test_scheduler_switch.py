"""One scheduler after the other on a cluster: each keeps its promises, and none leaves anything behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest

from .conftest import Cluster, equip, pai_install
from .test_scheduler import asked, job

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SERVICES = """\
# what keeps them
scheduler: {type: kueue}  # the usual one
virtual-clusters:
  - {name: default, quota: [{sku: lab-gpu, machines: 1}]}
"""
# in all namespaces or none: what schedulers bring that is not in a namespace of their own
KINDS = (
    *("customresourcedefinitions", "apiservices", "namespaces", "priorityclasses", "clusterroles"),
    *("clusterrolebindings", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
    *("validatingadmissionpolicies", "validatingadmissionpolicybindings", "resourcequotas", "limitranges"),
    *("roles", "rolebindings", "configmaps", "leases.coordination.k8s.io", "serviceaccounts", "secrets"),
)
# what the test of a scheduler does not show of it
SKIPPED = {
    "kueue": {"scheduler-requeue", "scheduler-down"},
    "volcano": {"scheduler-requeue", "scheduler-down"},
    "default": {
        *("scheduler-gang", "scheduler-deadlock", "scheduler-borrow", "scheduler-reclaim"),
        *("scheduler-oversize", "scheduler-requeue", "scheduler-down"),
    },
}


@pytest.fixture(scope="module")
def switching(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with Kueue; without a scheduler of jobs again afterwards."""
    services = cluster.site / "services-configuration.yaml"
    try:
        for scheduler in ("volcano", "kueue"):
            services.write_text(SERVICES.replace("kueue", scheduler))
            equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        yield cluster
    finally:
        cluster.ask("delete", "jobs", "--all", "--namespace=default", "--timeout=60s")
        services.unlink()
        report = cluster.converge()
    assert report["ok"], report["stderr"]


def scheduler(cluster: Cluster, verb: str, *words: str) -> CompletedProcess[str]:
    return pai_install("scheduler", verb, "--site", str(cluster.site), "--format", "json", *words)


def switch(cluster: Cluster, to: str, *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, report, and what was said."""
    done = scheduler(cluster, "switch", "--to", to, *words)
    report = json.loads(done.stdout) if done.stdout.strip() else {}
    return done.returncode, report, done.stderr


def settled(cluster: Cluster) -> list[str]:
    """Everything of KINDS, and the labels of nodes. Namespaces that go are waited for."""
    for name in ("pai-kueue", "pai-jobset", "pai-volcano"):
        if "deletionTimestamp" in cluster.ask("get", "namespace", name, "--output=yaml").stdout:
            cluster.kubectl("wait", f"namespace/{name}", "--for=delete", "--timeout=60s")
    kinds = ("--output=jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{'\\n'}{end}",)
    found = cluster.kubectl("get", ",".join(KINDS), "--all-namespaces", *kinds).splitlines()
    labels = "--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.labels}{'\\n'}{end}"
    return sorted([*found, *cluster.kubectl("get", "nodes", labels).splitlines()])


def served(cluster: Cluster) -> list[str]:
    """What the API has kinds of."""
    return sorted(cluster.kubectl("api-resources", "--output=name").split())


def promises(cluster: Cluster, backend: str, *words: str, but: frozenset[str] = frozenset()) -> None:
    """All that the scheduler promises is kept, and what it does not promise is told as not tried.

    but: what is tried all the same, because of the words.
    """
    done = scheduler(cluster, "test", *words)
    found = {row["id"]: row["verdict"] for row in json.loads(done.stdout)["findings"]}
    skipped = SKIPPED[backend] - but
    assert {check for check, verdict in found.items() if verdict == "SKIP"} == skipped, done.stdout
    assert {verdict for check, verdict in found.items() if check not in skipped} == {"PASS"}, done.stdout
    assert done.returncode == 0


@pytest.fixture(scope="module")
def before(switching: Cluster) -> tuple[list[str], list[str]]:
    """The cluster with Kueue, as it is to be again."""
    return settled(switching), served(switching)


def test_jobs_that_wait_refuse_it(switching: Cluster, before: tuple[list[str], list[str]]) -> None:
    del before
    waiting = job(switching, "waits", "100")
    waiting["metadata"].update({"namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "default"}})
    ended = job(switching, "ends", "10m")
    ended["metadata"].update({"namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "default"}})
    path = switching.site / ".pai" / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [waiting, ended]}))
    switching.kubectl("apply", f"--filename={path}")
    path.unlink()
    switching.kubectl("wait", "job/ends", "--for=condition=Complete", "--timeout=90s")
    code, _report, said = switch(switching, "volcano", "--yes")
    assert code == 4
    assert "Job default/waits of virtual cluster default waits" in said
    assert (switching.site / "services-configuration.yaml").read_text() == SERVICES
    assert switching.to_change() == []


def test_nothing_of_kueue_is_beside_volcano(switching: Cluster, before: tuple[list[str], list[str]]) -> None:
    code, report, said = switch(switching, "volcano", "--yes", "--force")
    assert code == 0, said
    found = {row["id"]: row["verdict"] for row in report["findings"]}
    assert {found[f"scheduler-{name}"] for name in ("start", "gang", "quota", "borrow", "reclaim")} == {"PASS"}
    text = (switching.site / "services-configuration.yaml").read_text()
    assert text == SERVICES.replace("type: kueue", "type: volcano")
    for name in (*settled(switching), *served(switching)):
        assert "kueue" not in name
        assert "jobset" not in name
    del before


def test_volcano_keeps_its_promises_and_nothing_is_left_to_do(switching: Cluster) -> None:
    report = switching.apply()
    assert report["ok"], report["stderr"]
    assert sum(row["changed"] for row in report["hosts"].values()) == 0
    promises(switching, "volcano")
    (default,) = asked(switching, "usage")["virtual_clusters"]
    assert {row["sku"]: (row["guaranteed"], row["used"]) for row in default["quota"]} == {"lab-gpu": (8, 0)}


def test_kubernetes_own_scheduler_comes_after_volcano(switching: Cluster) -> None:
    code, _report, said = switch(switching, "default", "--yes")
    assert code == 0, said
    assert not [name for name in (*settled(switching), *served(switching)) if "volcano" in name]
    assert switching.to_change() == []
    promises(switching, "default")


def test_after_all_of_them_the_cluster_is_as_it_was(switching: Cluster, before: tuple[list[str], list[str]]) -> None:
    code, _report, said = switch(switching, "kueue", "--yes")
    assert code == 0, said
    assert (settled(switching), served(switching)) == before
    assert (switching.site / "services-configuration.yaml").read_text() == SERVICES
    # longer than Kueue waits for pods: half a gang that got quota and no room gives all back
    promises(
        switching, "kueue", "--wait", "400", "--disruptive", but=frozenset({"scheduler-requeue", "scheduler-down"})
    )
    code, report, said = switch(switching, "kueue", "--yes")
    assert code == 0, said
    assert sum(row["changed"] for row in report["hosts"].values()) == 0
