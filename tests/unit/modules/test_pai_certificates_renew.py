"""New certificates on a control plane: when, in which order, and what stops it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.unit.modules.conftest import ModuleFailedError, Run

DAY = 86400
PATHS = ("/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/pki/ca.crt")
PODS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]


@pytest.fixture
def library(library: Callable[[str], Any]) -> Callable[[str], Any]:
    """Each module loaded once, so that what a test replaces in it stays replaced."""
    return cache(library)


@pytest.fixture
def acted(library: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the machine is like, and what was done to it."""
    module = library("pai_certificates_renew")
    state: dict[str, Any] = {"days": 20.0, "unread": (), "did": [], "silent": (), "quorum": ""}

    def certificates(_run: Any) -> list[dict[str, Any]]:
        ends = int(time.time() + state["days"] * DAY)
        return [{"path": path, "expires": ends, "problem": "", "unread": path in state["unread"]} for path in PATHS]

    monkeypatch.setattr(module, "certificates", certificates)
    monkeypatch.setattr(module, "quorum_problem", lambda _address: state["quorum"])
    monkeypatch.setattr(module, "QUORUM_TIMEOUT_S", 0)
    monkeypatch.setattr(module, "renew", lambda _module: state["did"].append("renew"))
    monkeypatch.setattr(module, "restart_static_pod", state["did"].append)
    monkeypatch.setattr(
        module, "programs", lambda _address: {name: lambda name=name: name not in state["silent"] for name in PODS}
    )
    return state


@pytest.fixture
def renew(acted: dict[str, Any], run_module: Run) -> Callable[..., dict[str, Any]]:
    """Runs the module on that machine."""
    del acted
    return lambda **words: run_module("pai_certificates_renew", within_days=30, address="10.0.0.1", **words)


def test_programs_restart_one_after_the_other(acted: dict[str, Any], renew: Any) -> None:
    result = renew()
    assert acted["did"] == ["renew", *PODS]
    assert result["changed"]
    assert result["renewed"] == [*PATHS[:2]]  # authorities stay


def test_nothing_ends_soon(acted: dict[str, Any], renew: Any) -> None:
    acted["days"] = 200
    assert not renew()["changed"]
    assert acted["did"] == []


def test_a_run_that_was_cut_off_is_completed(acted: dict[str, Any], renew: Any) -> None:
    acted.update(days=364, unread=("/etc/kubernetes/scheduler.conf",))
    assert renew()["restarted"] == ["kube-scheduler"]
    assert acted["did"] == ["kube-scheduler"]


def test_check_mode_says_what_it_would_do(acted: dict[str, Any], renew: Any) -> None:
    assert renew(check=True)["restarted"] == PODS
    assert acted["did"] == []


def test_it_stops_at_a_program_that_does_not_come_back(
    acted: dict[str, Any], renew: Any, snapshot: SnapshotAssertion
) -> None:
    acted["silent"] = ("kube-apiserver",)
    with pytest.raises(ModuleFailedError) as caught:
        renew(timeout=0)
    assert acted["did"] == ["renew", "etcd", "kube-apiserver"]
    assert caught.value.result["msg"] == snapshot


def test_etcd_must_do_without_this_machine(acted: dict[str, Any], renew: Any, snapshot: SnapshotAssertion) -> None:
    acted["quorum"] = "etcd of other: does not answer"
    with pytest.raises(ModuleFailedError) as caught:
        renew()
    assert acted["did"] == []
    assert caught.value.result["msg"] == snapshot
