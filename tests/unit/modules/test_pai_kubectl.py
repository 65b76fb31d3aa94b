"""The one kubectl of the machines: limits and errors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion


@pytest.fixture
def kubectl(kubectl_util: Any, tmp_path: Path) -> Any:
    """kubectl(script): a kubectl that does that."""

    def make(script: str) -> Any:
        program = tmp_path / "kubectl"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return kubectl_util.Kubectl("/etc/admin.conf", str(program))

    return make


def test_it_is_told_where_to_ask_and_what(kubectl: Any) -> None:
    answer = kubectl('echo "$@"; cat').run("apply", "-f", "-", data="words")
    assert (answer.ok, answer.out) == (True, "--kubeconfig=/etc/admin.conf apply -f -\nwords")


def test_a_question_has_a_limit_at_the_server(kubectl: Any) -> None:
    assert "--request-timeout=5s get nodes" in kubectl('echo "$@"').call("get", "nodes", timeout_s=5).out


def test_objects_and_lists(kubectl: Any) -> None:
    assert kubectl("echo '{\"a\": 1}'").get("node", "x") == {"a": 1}
    assert kubectl('echo \'{"items": [{"b": 2}, 3]}\'').items("nodes") == [{"b": 2}]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo refused >&2; exit 1", "refused"),
        ("echo '<html>'", "no JSON"),
        ("printf '[%.0s' $(seq 100000)", "no JSON"),
        ("echo '[]'", "no JSON object"),
        ("echo '{}'", "no list"),
    ],
)
def test_whatever_is_no_list_is_an_error_and_no_empty_list(
    kubectl: Any, kubectl_util: Any, script: str, words: str
) -> None:
    with pytest.raises(kubectl_util.KubectlError, match=words):
        kubectl(script).items("nodes")


def test_it_ends_after_its_time(kubectl: Any, kubectl_util: Any) -> None:
    began = time.monotonic()
    answer = kubectl("exec sleep 30").run("wait", "pod", "x", timeout_s=0.3)
    assert (answer.status, answer.message) == (kubectl_util.OVERDUE, "kubectl wait pod x did not end within 0.3 s")
    assert time.monotonic() - began < 10


def test_a_machine_without_it_says_so(kubectl_util: Any, snapshot: SnapshotAssertion) -> None:
    answer = kubectl_util.Kubectl(program="/nowhere/kubectl").run("get", "nodes")
    assert (answer.status, answer.ok) == (127, False)
    assert answer.message == snapshot
