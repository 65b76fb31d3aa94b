"""The recorder runs with a token alone, and waits for an API server that is away."""

from __future__ import annotations

import json

from testinfra.host import Host

UNIT = "pai-job-recorder.service"


def test_it_runs(host: Host) -> None:
    assert host.service(UNIT).is_running
    assert host.service(UNIT).is_enabled
    assert json.loads(host.file("/etc/pai-install/job-recorder.json").content_string)["namespaces"] == [
        "speech",
        "vision",
    ]


def test_it_is_not_root_and_nobody_else_reads_its_token(host: Host) -> None:
    pid = host.check_output(f"systemctl show --property=MainPID --value {UNIT}")
    owner = host.check_output(f"stat --format=%U /proc/{pid}")
    assert owner != "root"
    token = host.file("/run/pai-job-recorder/token")
    assert (token.user, token.mode, token.content_string.strip()) == (owner, 0o600, "planted-token")


def test_only_root_and_the_service_read_its_ledger(host: Host) -> None:
    folder = host.file("/var/lib/pai-job-recorder/")
    owner = host.check_output(f"stat --format=%U /proc/$(systemctl show --property=MainPID --value {UNIT})")
    assert (folder.user, folder.mode) == (owner, 0o700)
    (file,) = host.check_output("ls /var/lib/pai-job-recorder/").split()
    assert '"event":"alive"' in host.file(f"/var/lib/pai-job-recorder/{file}").content_string


def test_an_api_server_that_is_away_ends_it_not(host: Host) -> None:
    said = host.check_output(f"journalctl --unit={UNIT} --output=cat")
    assert "/leases/pai-job-recorder" in said
    assert "Traceback" not in said
    assert host.check_output(f"systemctl show --property=NRestarts --value {UNIT}") == "0"
