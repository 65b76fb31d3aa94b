"""Snapshots are taken when the schedule says so, into a folder for root alone."""

from __future__ import annotations

from testinfra.host import Host

TIMER, SERVICE = "pai-etcd-backup.timer", "pai-etcd-backup.service"


def test_the_timer_waits_for_its_time(host: Host) -> None:
    assert host.service(TIMER).is_running
    assert host.service(TIMER).is_enabled
    assert "OnCalendar=hourly" in host.file(f"/etc/systemd/system/{TIMER}").content_string


def test_it_takes_one_and_keeps_as_many_as_asked(host: Host) -> None:
    host.check_output(f"systemctl start {SERVICE}")
    assert host.file("/var/lib/pai-install/asked").content_string == "keep /var/lib/pai-install/etcd-backup 2\n"
