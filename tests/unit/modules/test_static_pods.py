"""Static pods: when their programs started, and beginning them anew."""

from __future__ import annotations

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


def test_the_youngest_process_of_a_name(static_pods: Any) -> None:
    """This process started a moment ago, and after the box did."""
    name = Path("/proc/self/comm").read_text().strip()
    started = static_pods.youngest_start(name)
    assert time.time() - 3600 < started <= time.time() + 1
    assert static_pods.youngest_start("no-such-program") == 0


def test_waiting_for_a_restart_ends_with_it_or_with_the_timeout(
    static_pods: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_pods, "youngest_start", lambda _name: time.time())
    static_pods.wait_for_restart(["etcd.yaml"], time.time())
    assert clock.slept == 0
    monkeypatch.setattr(static_pods, "youngest_start", lambda _name: 0.0)
    static_pods.wait_for_restart(["etcd.yaml"], time.time(), timeout_s=5)
    assert 5 <= clock.slept <= 6
