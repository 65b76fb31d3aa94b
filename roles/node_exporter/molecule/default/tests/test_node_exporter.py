"""The exporter runs without privileges, and responds to nobody without a certificate of the site's authority."""

from __future__ import annotations

from testinfra.host import Host

UNIT = "pai-node-exporter.service"


def test_it_runs_without_privileges(host: Host) -> None:
    assert host.service(UNIT).is_running
    assert host.service(UNIT).is_enabled
    pid = host.check_output(f"systemctl show --property=MainPID --value {UNIT}")
    assert host.check_output(f"stat --format=%U /proc/{pid}") == "daemon"
    capabilities = host.check_output(f"grep ^CapEff /proc/{pid}/status").split()[1]
    assert int(capabilities, 16) == 0


def test_its_key_is_roots_alone(host: Host) -> None:
    key = host.file("/etc/pai-install/node-exporter/server.pem")
    assert (key.user, key.mode) == ("root", 0o600)
    assert "BEGIN PRIVATE KEY" in key.content_string


def test_nobody_reads_without_a_certificate(host: Host) -> None:
    asked = "import ssl, urllib.request as u; c = ssl._create_unverified_context(); "
    asked += "print(u.urlopen('https://127.0.0.1:9100/metrics', context=c, timeout=5).status)"
    refused = host.run(f'python3 -c "{asked}"')
    assert refused.rc != 0
    assert "certificate required" in refused.stderr.lower().replace("_", " ")


def test_it_can_read_the_folder_of_text_files(host: Host) -> None:
    folder = host.file("/var/lib/pai-metrics")
    assert (folder.is_directory, folder.mode) == (True, 0o755)
    assert "permission denied" not in host.check_output(f"journalctl --unit={UNIT} --output=cat")


def test_no_collector_ends_it(host: Host) -> None:
    """A system call that the unit does not allow once ended the exporter at its first request."""
    program = host.check_output(f"systemctl show --property=ExecStart --value {UNIT}")
    assert "--collector.systemd" in program
    unit = host.file("/etc/systemd/system/pai-node-exporter.service").content_string
    assert "SystemCallFilter=adjtimex clock_adjtime" in unit
    assert "SystemCallErrorNumber=EPERM" in unit


def test_the_ends_of_certificates_become_metrics(host: Host) -> None:
    assert host.service("pai-node-metrics.timer").is_running
    host.check_output("systemctl start pai-node-metrics.service")
    metrics = host.file("/var/lib/pai-metrics/hourly.prom")
    assert metrics.mode == 0o644
    assert 'path="/etc/pai-install/node-exporter/server.pem"' in metrics.content_string
