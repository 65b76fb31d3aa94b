"""The gate between batches: a FAIL stops the run, anything else does not."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.health.gate import passed
from tests.errors import raises


def test_warnings_pass() -> None:
    findings = (Finding("disk", Verdict.WARN, "one", "is nearly full"), Finding("health", Verdict.PASS, "two", "ok"))
    assert passed(findings) == findings


def test_each_failure_is_named(snapshot: SnapshotAssertion) -> None:
    findings = (Finding("gpu-lost", Verdict.FAIL, "one", "GPU 3 is lost"), Finding("health", Verdict.PASS, "two", "ok"))
    with raises("machine-unhealthy-after-change") as caught:
        passed(findings)
    assert caught.value.details == snapshot
    assert caught.value.exit_code is ExitCode.VERIFICATION_FAILED
