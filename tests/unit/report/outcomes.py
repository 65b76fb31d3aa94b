"""Outcomes that the tests of the reports share: one that went well, one in which much went wrong."""

from __future__ import annotations

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.report.model import Counts, Failure, HostResult, HostStatus, Outcome, PhaseResult, TaskRecord

FINE = Outcome(
    duration_s=75.3,
    phases=(
        PhaseResult(
            "observe",
            "Observe the machines",
            1.2,
            {name: HostResult(HostStatus.OK, Counts(ok=1, tasks=1)) for name in ("master", "one")},
        ),
        PhaseResult(
            "base",
            "Prepare the operating system",
            48.0,
            {
                "master": HostResult(HostStatus.OK, Counts(ok=5, skipped=2, tasks=5)),
                "one": HostResult(
                    HostStatus.CHANGED,
                    Counts(ok=5, changed=1, skipped=2, tasks=5),
                    changes=(TaskRecord("base : Write /etc/hosts", "/roles/base/tasks/main.yml:12", 0.431),),
                ),
            },
        ),
    ),
    findings=(Finding("cluster-dns", Verdict.PASS, "one", "answers from a pod", "10.192.0.10", "10.192.0.10"),),
)

LOCK = Failure(
    host="one",
    task="base : Install <packages>",
    task_path="/roles/base/tasks/main.yml:30",
    message="E: Could not get lock /var/lib/dpkg/lock-frontend",
    evidence="line 1\nit is held by process 123 (apt) ``` & <b>",
    cause="Another program holds the machine's package database.",
    remedy="Wait until it is done | run again.",
)
TROUBLED = Outcome(
    duration_s=4000.0,
    phases=(
        PhaseResult(
            "observe",
            "Observe the machines",
            9.94,
            {
                "master": HostResult(HostStatus.OK, Counts(ok=1, tasks=1)),
                "one": HostResult(HostStatus.OK, Counts(ok=1, tasks=1)),
                "two": HostResult(
                    HostStatus.UNREACHABLE,
                    Counts(unreachable=1, tasks=1),
                    Failure("two", message="timed out", cause="It does not answer.", remedy="Bring it back."),
                ),
            },
        ),
        PhaseResult(
            "base",
            "Prepare the operating system",
            60.0,
            {
                "master": HostResult(HostStatus.OK, Counts(ok=2, tasks=2)),
                "one": HostResult(HostStatus.FAILED, Counts(ok=1, failed=1, tasks=2), LOCK),
                "two": HostResult(HostStatus.LEFT, why="not reached: timed out"),
            },
        ),
        PhaseResult(
            "workers",
            "Join the workers",
            0.0,
            {name: HostResult(HostStatus.LEFT, why="failed in phase base") for name in ("one", "two")},
        ),
    ),
    findings=(
        Finding("time-sync", Verdict.WARN, "master", "2 s | off", "2 s", "< 1 s", "check chrony"),
        Finding("swap-off", Verdict.FAIL, "one", "swap is on", "2 GiB", "none", "swapoff -a"),
    ),
)
