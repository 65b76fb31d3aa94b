"""An API server with a scheduler and nodes that are none: a bench of schedulers without machines.

etcd, the API server, the controllers and the scheduler are those of the site's components. kwok (Apache-2.0, pinned in
tests/perf/kwok) plays the kubelets: it keeps the nodes Ready and lets bound pods run.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pai_install.components.build import go_arguments
from pai_install.components.catalogue import GoBuild
from pai_install.components.store import default_cache
from pai_install.run.environment import cached_program
from pai_install.site import load_site
from tests.perf.process import ROOT

KWOK = ROOT / "tests" / "perf" / "kwok"
_TOKEN = "bench"
_CONTROLLERS = "job-controller,resourcequota-controller,namespace-controller,serviceaccount-controller"


@dataclass(frozen=True, slots=True)
class FakeCluster:
    """kubectl, and the file that says where the API server is."""

    kubectl: Path
    kubeconfig: Path

    def ask(self, *words: str, objects: Sequence[dict[str, Any]] = ()) -> str:
        """kubectl's answer. Raises CalledProcessError."""
        given = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}) if objects else None
        argv = [self.kubectl, f"--kubeconfig={self.kubeconfig}", *words]
        return subprocess.run(argv, input=given, capture_output=True, text=True, check=True).stdout

    def items(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind."""
        found: list[dict[str, Any]] = json.loads(self.ask("get", kind, "--all-namespaces", "--output=json"))["items"]
        return found


def kwok(folder: Path) -> Path:
    """Builds kwok, or takes what $PAI_BENCH_KWOK names."""
    if given := os.environ.get("PAI_BENCH_KWOK"):
        return Path(given)
    build = GoBuild(kind="go", packages=("sigs.k8s.io/kwok/cmd/kwok",), disk_mb=3000)
    subprocess.run(
        ["go", *go_arguments(build, "", folder)], cwd=KWOK, check=True, env={**os.environ, "CGO_ENABLED": "0"}
    )
    return folder / "kwok"


@contextmanager
def fake_cluster(site: Path, folder: Path, fake_kubelets: Path) -> Iterator[FakeCluster]:
    """All programs, started in turn; none is left afterwards. Raises OSError where a program is not in the cache."""
    api, etcd, peers = _free_ports(3)
    programs = {name: _program(site, name) for name in (*_PROGRAMS, "kubectl")}
    key, tokens, kubeconfig = folder / "sa.key", folder / "tokens.csv", folder / "kubeconfig"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    tokens.write_text(f"{_TOKEN},bench,bench,system:masters\n")
    kubeconfig.write_text(json.dumps(_kubeconfig(f"https://127.0.0.1:{api}")))
    store = f"http://127.0.0.1:{etcd}"
    peer = f"http://127.0.0.1:{peers}"
    words = {
        "etcd": [
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        ],
        "kube-apiserver": [
            f"--etcd-servers={store}",
            "--bind-address=127.0.0.1",
            f"--secure-port={api}",
            f"--cert-dir={folder / 'certificates'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://bench",
            f"--token-auth-file={tokens}",
            "--authorization-mode=AlwaysAllow",
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
        ],
        "kube-controller-manager": [
            f"--kubeconfig={kubeconfig}",
            f"--controllers={_CONTROLLERS}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--leader-elect=false",
            "--secure-port=0",
        ],
        "kube-scheduler": [
            f"--kubeconfig={kubeconfig}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--leader-elect=false",
            "--secure-port=0",
        ],
    }
    with ExitStack() as stack:
        cluster = FakeCluster(programs["kubectl"], kubeconfig)
        for name in _PROGRAMS:
            stack.enter_context(_running([programs[name], *words[name]], folder / f"{name}.log"))
            if name == "kube-apiserver":
                _wait_for(lambda: cluster.ask("get", "namespace", "default"))
        play = [fake_kubelets, f"--kubeconfig={kubeconfig}", "--manage-all-nodes=true"]
        stack.enter_context(_running(play, folder / "kwok.log"))
        yield cluster


_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def _program(site: Path, name: str) -> Path:
    """Those of images lie in the cache as they were built; the newest. Raises OSError where there is none."""
    built = sorted(default_cache().glob(f"entries/programs-*/{name}"), key=lambda path: path.stat().st_mtime)
    found = built[-1] if built else cached_program(load_site(site).site, name)
    if found is None:
        raise OSError(f"{name} is not in the cache of components: pai-install components fetch --site {site}")
    return found


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "bench", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def _running(argv: Sequence[str | Path], log: Path) -> Iterator[None]:
    with log.open("w") as output, subprocess.Popen(argv, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(answer: Any, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            answer()
        except subprocess.CalledProcessError:
            if time.monotonic() > end:
                raise
            time.sleep(1)
        else:
            return
