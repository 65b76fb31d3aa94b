"""Ports: free, ours, or somebody else's."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.parts import registry
from pai_install.site import Site
from tests.unit.preflight.machines import findings_of, good, installed


def holding(site: Site, machine: str, port: int, program: str, protocol: str = "tcp", base: Any = good) -> Finding:
    """What is said of a machine where a program holds a port."""
    listeners = [{"protocol": protocol, "port": port, "program": program}]
    return findings_of(site, "ports", {machine: {"listeners": listeners}}, base)[machine]


def test_every_port_of_ours_is_guarded(site: Site) -> None:
    for machine in site.machines:
        for need in registry.ports(site, machine):
            found = holding(site, machine.hostname, need.port, "python3 (4711)", need.protocol)
            assert found.verdict is Verdict.FAIL, need
            assert f"{need} (" in found.value
            assert "python3 (4711)" in found.value


@pytest.mark.parametrize(
    ("machine", "port", "protocol"),
    [
        ("worker1", 6443, "tcp"),
        ("worker1", 2379, "tcp"),
        ("worker1", 5080, "tcp"),
        ("master", 22, "tcp"),
        ("master", 6443, "udp"),
    ],
)
def test_other_ports_are_free_to_all(site: Site, machine: str, port: int, protocol: str) -> None:
    assert holding(site, machine, port, "python3 (4711)", protocol).verdict is Verdict.PASS


def test_the_right_program_needs_the_right_history(site: Site) -> None:
    """A kubelet on a machine that we never touched is another cluster's."""
    assert holding(site, "worker1", 10250, "kubelet (800)").verdict is Verdict.FAIL
    assert holding(site, "worker1", 10250, "kubelet (800)", base=installed).verdict is Verdict.PASS
    assert holding(site, "worker1", 10250, "python3 (800)", base=installed).verdict is Verdict.FAIL


@pytest.mark.parametrize("program", ["chronyd", "ntpd"])
def test_a_time_service_may_be_there_before_us(site: Site, program: str) -> None:
    assert holding(site, "master", 123, f"{program} (5)", "udp").verdict is Verdict.PASS


def test_who_holds_it_is_told_as_far_as_known(site: Site, snapshot: SnapshotAssertion) -> None:
    assert "the kernel itself" in holding(site, "worker1", 8472, "", "udp").value
    changes = {"worker1": {"listeners": [{"protocol": "tcp", "port": 10250}], "identity": {"root": False}}}
    assert findings_of(site, "ports", changes)["worker1"].value == snapshot


def test_node_ports(site: Site) -> None:
    listeners = [
        {"protocol": "tcp", "port": 30000, "program": "python3 (1)"},
        {"protocol": "tcp", "port": 32767, "program": "java (2)"},
        {"protocol": "tcp", "port": 32768, "program": "node (3)"},
        {"protocol": "tcp", "port": 31000, "program": "kube-proxy (4)"},
        {"protocol": "udp", "port": 30001, "program": "named (5)"},
    ]
    found = findings_of(site, "node-ports", {"worker1": {"listeners": listeners}})["worker1"]
    assert (found.verdict, found.value) == (Verdict.WARN, "30000 python3 (1), 32767 java (2)")
