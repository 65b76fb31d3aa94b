"""Containers that are tried with --deep-image: what says nothing of the GPUs is no FAIL."""

from __future__ import annotations

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.health.evidence.document import CommandResult
from tests.unit.health.machines import healthy, uuid

CHECKS = {"docker_gpu": "container-gpu-docker", "containerd_gpu": "container-gpu-containerd"}


@pytest.mark.parametrize("command", CHECKS)
@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (CommandResult(timed_out=True), Verdict.UNKNOWN),
        (CommandResult(not_started=True), Verdict.UNKNOWN),
        (CommandResult(rc=125, stderr="docker: Error response from daemon: No such image: x:1"), Verdict.UNKNOWN),
        (CommandResult(rc=1, stderr='ctr: image "docker.io/library/x:1": not found'), Verdict.UNKNOWN),
        (CommandResult(rc=1, stderr="unresolvable CDI devices nvidia.com/gpu=all"), Verdict.FAIL),
        (CommandResult(rc=127, stderr='exec: "nvidia-smi": executable file not found in $PATH'), Verdict.FAIL),
        (CommandResult(rc=0, stdout=f"GPU 0: H100 (UUID: {uuid(0)})\nGPU 1: H100 (UUID: {uuid(1)})"), Verdict.PASS),
    ],
)
def test_only_a_container_that_ran_or_refused_says_something(
    command: str, result: CommandResult, verdict: Verdict
) -> None:
    assert healthy(2).command(command, result).verdict(CHECKS[command]) is verdict
