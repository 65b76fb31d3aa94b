"""The services run with few powers, and wait for an API server that is away."""

from __future__ import annotations

import json

import pytest
from testinfra.host import Host

GUARD, PUBLISHER = "pai-group-network.service", "pai-group-addresses.service"


@pytest.mark.parametrize("unit", [GUARD, PUBLISHER])
def test_it_runs(host: Host, unit: str) -> None:
    assert host.service(unit).is_running
    assert host.service(unit).is_enabled
    assert host.check_output(f"systemctl show --property=NRestarts --value {unit}") == "0"
    assert "Traceback" not in host.check_output(f"journalctl --unit={unit} --output=cat")


def test_its_settings(host: Host) -> None:
    found = json.loads(host.file("/etc/pai-install/group-network.json").content_string)
    assert found["namespaces"] == ["speech", "vision"]
    assert found["ports"] == {"tcp": [2379, 10250]}


def test_the_publisher_is_not_root_and_nobody_else_reads_its_token(host: Host) -> None:
    pid = host.check_output(f"systemctl show --property=MainPID --value {PUBLISHER}")
    owner = host.check_output(f"stat --format=%U /proc/{pid}")
    assert owner != "root"
    token = host.file("/run/pai-group-addresses/token")
    assert (token.user, token.mode, token.content_string.strip()) == (owner, 0o600, "planted-token")


def test_there_are_no_rules_before_addresses_are_published(host: Host) -> None:
    assert host.run("nft list table ip pai_groups").rc != 0
