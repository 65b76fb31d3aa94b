"""Nodes that are none, beside those of a cluster: kwok (Apache-2.0, pinned in tests/perf/kwok) plays their kubelets."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pai_install.app.kubectl import ready
from pai_install.components.build import go_arguments
from pai_install.components.catalogue import GoBuild
from tests.e2e.conftest import Cluster, kubectl_of
from tests.perf.process import ROOT

KWOK = ROOT / "tests" / "perf" / "kwok"
# names a program that was built before: building takes up to half an hour
BUILT = "PAI_KWOK"
# a node with this label is kwok's
MARK = "pai-bench/machine"
# nodes stay Ready, bound pods become Ready; none ends
_STAGES = (
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-delete.yaml",
)


@dataclass(frozen=True, slots=True)
class Kwok:
    """stages: what it does to nodes and pods, in files of its module."""

    program: Path
    stages: Path


def kwok(folder: Path) -> Kwok:
    """Builds it through the module proxy, as go.sum pins it, or takes the program that PAI_KWOK names.

    Raises CalledProcessError.
    """
    program = Path(os.environ.get(BUILT, folder / "kwok"))
    if BUILT not in os.environ:
        build = GoBuild(kind="go", packages=("sigs.k8s.io/kwok/cmd/kwok",), disk_mb=3000)
        subprocess.run(
            ["go", *go_arguments(build, "", folder)], cwd=KWOK, check=True, env={**os.environ, "CGO_ENABLED": "0"}
        )
    words = ["go", "list", "-mod=readonly", "-m", "-f={{.Dir}}", "sigs.k8s.io/kwok"]
    found = subprocess.run(words, cwd=KWOK, check=True, capture_output=True, text=True).stdout.strip()
    return Kwok(program, Path(found) / "kustomize" / "stage")


@contextmanager
def fake_kubelets(cluster: Cluster, built: Kwok, folder: Path) -> Iterator[None]:
    """It plays the nodes with MARK, and no others."""
    stages, kubeconfig = folder / "stages.yaml", folder / "kubeconfig"
    stages.write_text("\n---\n".join((built.stages / name).read_text() for name in _STAGES))
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--output=json"))
    server = next(it for it in kubectl_of(cluster.site)[1] if ready(it))
    for it in config["clusters"]:
        it["cluster"]["server"] = f"https://{server}:6443"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json.dumps(config))
    argv: list[str | Path] = [
        built.program,
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=false",
        f"--config={stages}",
    ]
    argv += [f"--manage-nodes-with-label-selector={MARK}", "--node-lease-duration-seconds=120"]
    with (folder / "kwok.log").open("w") as output, subprocess.Popen(argv, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)
