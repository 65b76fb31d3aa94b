"""One time daemon, with the servers of the site beside the admin's own settings."""

from __future__ import annotations

from testinfra.host import Host


def sources(host: Host) -> set[str]:
    """Addresses that chrony asks for the time."""
    return {line.split(",")[2] for line in host.check_output("chronyc -n -c sources").splitlines()}


def test_chrony_runs_and_nothing_beside_it(host: Host) -> None:
    assert host.service("chrony").is_running
    assert host.service("chrony").is_enabled
    assert not host.package("ntpsec").is_installed
    assert not host.service("systemd-timesyncd").is_running


def test_the_site_and_the_admin_name_the_servers(host: Host) -> None:
    servers = host.ansible.get_variables()["time_sync_servers"]
    assert sources(host) == {*servers, "192.0.2.123"}


def test_settings_made_by_hand_are_kept(host: Host) -> None:
    assert "makestep 0.5 7" in host.file("/etc/chrony/chrony.conf").content_string


def test_the_clock_of_the_box_is_left_alone(host: Host) -> None:
    assert " -x " in host.check_output("ps -C chronyd -o args=")
