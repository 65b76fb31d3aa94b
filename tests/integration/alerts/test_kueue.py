"""Kueue's program with the configuration and the rights of its add-on: who may read its metrics, and who may not."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import cached
from pai_install.components.modules import Modules
from pai_install.components.store import Store, default_cache
from pai_install.monitoring.scrape import KEPT, KUEUE, KUEUE_NAMESPACE, KUEUE_PORT_NAME
from tests.addons import ROOT, addon_action
from tests.integration.control_plane import Api, Json, running
from tests.ports import free_ports

ADDONS = ROOT / "addons"
ACCOUNT = "kueue-controller-manager"


# what the program needs to start, and may change
ASKED = (
    "CustomResourceDefinition",
    "Role",
    "RoleBinding",
    "Secret",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
VALUES = {
    "image": "kueue",
    "replicas": 1,
    "api_port": 6443,
    "pods_ready_timeout": "5m",
    "kubeflow": [],
    "metrics": True,
}


def manifests() -> tuple[str, ...]:
    """The definitions of Kueue's kinds, from the component cache."""
    catalogue = load_catalogue()
    selection = resolve(catalogue, needed=["kueue"])
    (entry,) = cached(selection, Modules(catalogue)).values()
    if entry is None:
        pytest.skip("kueue is not in the component cache: pai-install components fetch")
    return tuple(path.read_text() for path in sorted((entry.folder / "manifests").iterdir()))


def objects(api: Api) -> list[Json]:
    """The objects of the add-on without its definitions of kinds, applied, with the role of Prometheus."""
    made: list[Json] = list(addon_action().objects_of(ADDONS / "kueue", VALUES, manifests()))
    prometheus = yaml.safe_load_all((ADDONS / "monitoring/tests/plain.expected.yml").read_text())
    kinds = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")
    rights = [entry for entry in prometheus if entry and entry["kind"] in kinds]
    for entry in (*made, *rights):
        if entry["kind"] in (*kinds, *ASKED):
            api.apply(entry)
    return made


def token(api: Api, namespace: str, account: str) -> str:
    """A token of a service account."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    found: str = api.ask("POST", path, body)["status"]["token"]
    return found


def kueue() -> Path:
    """The program, from the component cache."""
    catalogue = load_catalogue()
    (pick,) = resolve(catalogue, needed=["kueue"]).picks
    entry = Store(default_cache()).lookup(Modules(catalogue).programs_key(pick), print)
    if entry is None:
        pytest.skip("kueue is not in the component cache: pai-install components fetch")
    return entry.path("kueue")


@pytest.fixture(scope="module")
def url(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the metrics of a running Kueue."""
    folder = tmp_path_factory.mktemp("kueue")
    made = objects(api)
    (settings,) = (it for it in made if it["kind"] == "ConfigMap" and it["metadata"]["name"] == ACCOUNT)
    configuration: dict[str, Any] = yaml.safe_load(settings["data"]["configuration.yaml"])
    (pod,) = (it["spec"]["template"]["spec"] for it in made if it["kind"] == "Deployment")
    ports = {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]}
    assert configuration["metrics"]["bindAddress"] == f":{ports[KUEUE_PORT_NAME]}"
    metrics, health, webhook = free_ports(3)
    configuration["metrics"]["bindAddress"] = f"127.0.0.1:{metrics}"
    configuration["health"]["healthProbeBindAddress"] = f"127.0.0.1:{health}"
    configuration["webhook"] = {"port": webhook, "certDir": str(folder)}
    configuration["leaderElection"] = {"leaderElect": False}
    configuration["namespace"] = KUEUE_NAMESPACE
    configuration["integrations"]["frameworks"] = ["batch/job"]
    (folder / "configuration.yaml").write_text(json.dumps(configuration))
    own = token(api, KUEUE_NAMESPACE, ACCOUNT)
    access = api.kubeconfig("kueue", own)
    words: list[str | Path] = [kueue(), f"--config={folder}/configuration.yaml", f"--kubeconfig={access}"]
    with running(words, folder / "kueue.log") as program:
        address = f"https://127.0.0.1:{metrics}/metrics"
        end = time.monotonic() + 180
        while status(address, "")[0] == 0:
            mount(api, folder)
            assert program.poll() is None, (folder / "kueue.log").read_text()[-3000:]
            assert time.monotonic() < end, (folder / "kueue.log").read_text()[-3000:]
            time.sleep(0.3)
        yield address


def mount(api: Api, folder: Path) -> None:
    """Writes the files of the certificate that Kueue has made, as the kubelet does."""
    found = api.ask("GET", f"/api/v1/namespaces/{KUEUE_NAMESPACE}/secrets/kueue-webhook-server-cert").get("data", {})
    for name, content in found.items():
        (folder / name).write_bytes(base64.b64decode(content))


def status(url: str, bearer: str) -> tuple[int, str]:
    """Status and text of an answer, 0 for none."""
    context = ssl._create_unverified_context()  # noqa: S323 - as Prometheus asks: Kueue signs it itself
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {bearer}"} if bearer else {})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:  # noqa: S310 - on loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""


def test_prometheus_reads_kueue(api: Api, url: str) -> None:
    code, text = status(url, token(api, "pai-monitoring", "metrics-reader"))
    assert code == 200
    assert "\ncontroller_runtime_" in text or "\nkueue_" in text


def test_a_kubelet_that_keeps_the_token_of_prometheus_reads_no_pods(api: Api, url: str) -> None:
    reader = api.as_(token(api, "pai-monitoring", "metrics-reader"))
    for path in ("/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces/pai-monitoring/secrets"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            reader.ask("GET", path)
        assert refused.value.code == HTTPStatus.FORBIDDEN


def test_nobody_else_reads_kueue(api: Api, url: str) -> None:
    assert status(url, "")[0] == 401
    assert status(url, "alice-token")[0] == 403


def test_the_names_that_are_kept_are_names_of_kueue() -> None:
    program = kueue().read_bytes()
    kept = "|".join(KEPT[KUEUE])
    for word in (
        "pending_workloads",
        "admission_wait_time_seconds",
        "preempted_workloads_total",
        "cluster_queue_status",
    ):
        assert word.encode() in program
        assert word.partition("_")[2] in kept
