"""Everything is proven, and nothing of the proof is left."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host


@pytest.fixture(scope="module")
def runs() -> list[dict[str, Any]]:
    """What each run of the role changed and found."""
    evidence = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "evidence"
    return [json.loads(line) for line in (evidence / "changes.jsonl").read_text().splitlines()]


def test_every_finding_of_every_run_passes(runs: list[dict[str, Any]]) -> None:
    findings = [finding for run in runs for finding in run["findings"]]
    assert {"cluster-dns", "service", "api", "node-ready", "system-pods"} <= {finding["id"] for finding in findings}
    # SKIP: the kernel of a lab machine is the box's
    assert [finding for finding in findings if finding["verdict"] not in ("PASS", "SKIP")] == []


def test_check_mode_starts_no_pods(runs: list[dict[str, Any]]) -> None:
    assert [bool(run["findings"]) for run in runs] == [not run["check"] for run in runs]


def test_the_test_pods_are_gone(host: Host) -> None:
    if host.file("/etc/kubernetes/admin.conf").exists:
        kubectl = "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf"
        # the cluster takes some seconds for the empty namespace
        host.run(f"{kubectl} wait --for=delete --timeout=60s namespace/pai-install-verify")
        assert "pai-install-verify" not in host.check_output(f"{kubectl} get namespaces")
