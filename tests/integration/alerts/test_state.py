"""kube-state-metrics with the arguments and the rights of its add-on: leases, and gangs of Volcano."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import fetch
from pai_install.components.modules import Modules
from pai_install.components.store import Store, default_cache
from pai_install.monitoring.state import state_arguments
from tests.addons import ROOT
from tests.integration.control_plane import Api, Json, running
from tests.integration.upstream_manifests import definitions_of
from tests.ports import free_ports

RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")
VOLCANO = "scheduling.volcano.sh/v1beta1"
LEASE: Json = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "pai-job-recorder", "namespace": "kube-system"},
    "spec": {"holderIdentity": "m", "renewTime": "2026-11-01T00:00:00.000000Z"},
}
OBJECTS: tuple[Json, ...] = (
    LEASE,
    {**LEASE, "metadata": {"name": "n1", "namespace": "kube-node-lease"}},
    {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": "job-1", "namespace": "default"},
        "spec": {"queue": "vision", "minMember": 1},
    },
)


def definitions() -> list[Json]:
    """Volcano's kind of gangs."""
    name = "podgroups.scheduling.volcano.sh"
    return [it for it in definitions_of("volcano") if it["metadata"]["name"] == name]


def program() -> Path:
    """kube-state-metrics, built where it is not in the cache yet."""
    catalogue = load_catalogue()
    selection, source = resolve(catalogue, needed=["kube-state-metrics"]), Modules(catalogue)
    fetch(selection, source)
    entry = Store(default_cache()).lookup(source.programs_key(selection.picks[0]), print)
    assert entry is not None
    return entry.path("kube-state-metrics")


def applied(api: Api, entry: Json) -> None:
    """Applies an object, once the API server knows its kind."""
    end = time.monotonic() + 60
    while True:
        try:
            api.apply(entry)
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND or time.monotonic() > end:
                raise
            time.sleep(0.3)
        else:
            return


@pytest.fixture(scope="module")
def metrics(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of its metrics."""
    folder = tmp_path_factory.mktemp("state")
    made = yaml.safe_load_all((ROOT / "addons/monitoring/tests/no_receivers.expected.yml").read_text())
    for entry in (*definitions(), *(it for it in made if it and it["kind"] in RIGHTS), *OBJECTS):
        applied(api, entry)
    status = {"apiVersion": VOLCANO, "kind": "PodGroup", "status": {"phase": "Pending"}}
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/job-1"
    api.ask("PATCH", path, status, "application/merge-patch+json")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    account = "/api/v1/namespaces/pai-monitoring/serviceaccounts/monitoring/token"
    access = api.kubeconfig("monitoring", api.ask("POST", account, body)["status"]["token"])
    port, own = free_ports(2)
    words: list[str | Path] = [program(), f"--kubeconfig={access}", "--host=127.0.0.1", "--telemetry-host=127.0.0.1"]
    words += [f"--port={port}", f"--telemetry-port={own}", *state_arguments(volcano=True)]
    with running(words, folder / "state.log"):
        yield f"http://127.0.0.1:{port}/metrics"


def sample(url: str, name: str, **labels: str) -> float | None:
    """The value of a sample with these labels, None for no such sample within a minute and a half."""
    wanted = {f'{label}="{value}"' for label, value in labels.items()}
    end = time.monotonic() + 90
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - on loopback
                text = answer.read().decode()
        except OSError:  # it still starts
            text = ""
        for shown, value in re.findall(rf"^{name}\{{(.*)\}} (\S+)$", text, re.MULTILINE):
            if wanted <= set(shown.split(",")):
                return float(value)
        time.sleep(0.3)
    print(re.findall(rf"^{name}.*$", text, re.MULTILINE)[:20])  # noqa: T201 - why the test fails
    return None


def test_the_lease_of_the_recorder_has_its_time_and_those_of_nodes_are_left_out(metrics: str) -> None:
    assert sample(metrics, "kube_lease_renew_time", lease="pai-job-recorder") == 1793491200
    with urllib.request.urlopen(metrics, timeout=10) as answer:  # noqa: S310 - on loopback
        assert b'lease="n1"' not in answer.read()


def test_gangs_of_volcano_have_their_queue_and_phase(metrics: str) -> None:
    created = sample(metrics, "volcano_pod_group_created_seconds", phase="Pending", queue="vision")
    assert created is not None
    assert abs(created - time.time()) < 600
