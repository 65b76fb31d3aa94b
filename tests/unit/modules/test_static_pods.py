"""Static pods: when their programs started, and beginning them anew."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.conftest import Clock


def test_static_pod_begins_anew_when_its_program_has_ended(
    static_pods: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_pods, "MANIFESTS", str(tmp_path))
    monkeypatch.setattr(static_pods, "STATE_DIR", str(tmp_path))
    manifest = tmp_path / "kube-scheduler.yaml"
    manifest.write_text("kind: Pod")
    seen: list[bool] = []

    def running(name: str) -> float:
        """It ends a while after its manifest is gone."""
        assert name == "kube-scheduler"
        seen.append(manifest.exists())
        return 1.0 if len(seen) < 2 else 0.0

    monkeypatch.setattr(static_pods, "youngest_start", running)
    monkeypatch.setattr(static_pods.time, "sleep", lambda _seconds: None)
    static_pods.restart_static_pod("kube-scheduler")
    assert seen == [False, False]
    assert manifest.read_text() == "kind: Pod"
    static_pods.restart_static_pod("kube-admin")  # no such pod: nothing to do
    assert len(seen) == 2


def test_a_restart_that_was_killed_is_completed(
    static_pods: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_pods, "MANIFESTS", str(tmp_path))
    monkeypatch.setattr(static_pods, "STATE_DIR", str(tmp_path))
    monkeypatch.setattr(static_pods, "youngest_start", lambda _name: 0.0)
    (tmp_path / "etcd.aside").write_text("kind: Pod")
    assert static_pods.stopped_halfway("etcd")
    static_pods.restart_static_pod("etcd")
    assert (tmp_path / "etcd.yaml").read_text() == "kind: Pod"
    assert not static_pods.stopped_halfway("etcd")
    assert not (tmp_path / "etcd.aside").exists()


def process(proc: Path, number: int, name: str, ticks: int, *words: str) -> None:
    """A process as /proc has it. ticks: of its start."""
    folder = proc / str(number)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{number} ({name[:15]}) S " + " ".join(["0"] * 18) + f" {ticks} 0 0\n")
    (folder / "cmdline").write_text("\0".join((name, *words)))


def test_the_youngest_process_of_a_static_pod(static_pods: Any, tmp_path: Path) -> None:
    """HiveD's pod runs a kube-scheduler, too, which is no reason to wait for one."""
    (tmp_path / "uptime").write_text("1000.0 0.0\n")
    ticks = os.sysconf("SC_CLK_TCK")
    scheduler = "kube-scheduler"
    process(tmp_path, 3, scheduler, 900 * ticks, "--config=/etc/kube-scheduler/config.yaml")
    assert static_pods.youngest_start(scheduler, str(tmp_path)) == 0
    for number, second in ((4, 500), (5, 700)):
        process(tmp_path, number, scheduler, second * ticks, "--kubeconfig=/etc/kubernetes/scheduler.conf")
    assert abs(time.time() - 300 - static_pods.youngest_start(scheduler, str(tmp_path))) < 5
    assert static_pods.youngest_start("no-such-program", str(tmp_path)) == 0


def test_waiting_for_a_restart_ends_with_it_or_with_the_timeout(
    static_pods: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_pods, "youngest_start", lambda _name: time.time())
    static_pods.wait_for_restart(["etcd.yaml"], time.time())
    assert clock.slept == 0
    monkeypatch.setattr(static_pods, "youngest_start", lambda _name: 0.0)
    static_pods.wait_for_restart(["etcd.yaml"], time.time(), timeout_s=5)
    assert 5 <= clock.slept <= 6
