"""The thresholds of preflight and their sources."""

from __future__ import annotations

from pai_install.checks.limits import Limit, Limits

LIMITS = Limits(
    {
        "visible-memory-percent": Limit(90, "own: kernel and firmware reserve part of the installed memory"),
        "control-plane-memory-mib": Limit(1700, "kubeadm"),
        "control-plane-cpus": Limit(2, "kubeadm"),
        "process-limit": Limit(65536, "own"),
        "etcd-write-p99-ms": Limit(10, "etcd's documentation"),
        "etcd-write-median-ms": Limit(100, "etcd's heartbeat"),
        "clock-warn-seconds": Limit(1, "own"),
        "clock-fail-seconds": Limit(30, "own"),
        "resolvers-most": Limit(3, "glibc, Kubernetes"),
    }
)
