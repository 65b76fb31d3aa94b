"""Machines of the list mount two folders, over NFS 4 alone, and no other does. The client is libnfs, not a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from testinfra.host import Host

EXPORTS = "/etc/ganesha/pai-install.exports"


@pytest.fixture
def address(host: Host) -> str:
    """One of a client: the machine's own."""
    return str(host.ansible.get_variables()["ansible_host"])


def url(address: str, path: str) -> str:
    return f"'nfs://{address}{path}?version=4&uid=0&gid=0'"


def names(host: Host, address: str, path: str) -> set[str]:
    """What a client sees in a folder."""
    return {line.split()[-1] for line in host.check_output(f"nfs-ls {url(address, path)}").splitlines()}


def test_both_folders_are_served_with_what_was_in_them(host: Host, address: str) -> None:
    assert "kept" in names(host, address, "/share/data")
    assert "kept" not in names(host, address, "/share/users")


def until(host: Host, command: str) -> None:
    """Waits for a command to succeed, longer than a server that has just started takes to open files."""
    host.check_output(f'timeout 150 sh -c "until {command}; do sleep 1; done"')


def said_at(host: Host, words: str) -> datetime:
    """When ganesha first logged the words."""
    line = host.check_output(f"grep --max-count=1 '{words}' /var/log/ganesha/ganesha.log")
    return datetime.strptime(" ".join(line.split()[:2]), "%d/%m/%Y %H:%M:%S")  # noqa: DTZ007 - both of one clock


def test_a_new_server_does_not_wait_for_clients_that_it_never_had(host: Host) -> None:
    until(host, "grep --quiet NOT.IN.GRACE /var/log/ganesha/ganesha.log")
    waited = said_at(host, "Now NOT IN GRACE") - said_at(host, "Now IN GRACE")
    assert waited < timedelta(seconds=60)


def test_root_writes_as_everybody_does(host: Host, address: str) -> None:
    for folder, mode in (("/share/data", 0o777), ("/share/users", 0o775)):
        until(host, f"nfs-cp /etc/hostname {url(address, folder + '/written')}")
        written = host.file(f"{folder}/written")
        assert written.content_string == host.file("/etc/hostname").content_string
        assert (written.uid, written.gid) == (1000, 1000)
        assert (host.file(folder).uid, host.file(folder).mode) == (1000, mode)


def test_no_one_else_mounts(host: Host) -> None:
    for path in ("/share/data", "/share/users"):
        assert host.run(f"nfs-ls {url('127.0.0.1', path)}").rc != 0


def test_nothing_but_the_two_folders_is_served(host: Host, address: str) -> None:
    assert host.run(f"nfs-ls {url(address, '/share/of-the-admin')}").rc != 0
    assert host.file("/share/of-the-admin").mode == 0o700


def test_version_3_and_its_helpers_are_not_there(host: Host) -> None:
    said = host.check_output("ss --listening --tcp --udp --numeric --processes --no-header")
    served = [line.split()[4].rpartition(":")[2] for line in said.splitlines() if "ganesha" in line]
    assert set(served) == {"2049"}


def test_the_admins_configuration_is_kept_beside(host: Host) -> None:
    kept = host.check_output("cat /etc/ganesha/ganesha.conf.*.pai-backup")
    assert kept.strip() == "# by hand"


@pytest.fixture
def exports(host: Host) -> Iterator[None]:
    """The file, which a test may change."""
    before = host.file(EXPORTS).content_string
    host.check_output(f"cp --preserve {EXPORTS} {EXPORTS}.before")
    yield
    host.check_output(f"mv {EXPORTS}.before {EXPORTS} && systemctl reload nfs-ganesha")
    assert host.file(EXPORTS).content_string == before


def test_another_client_is_a_reload_and_no_restart(host: Host, address: str, exports: None) -> None:
    del exports
    before = host.check_output("systemctl show --property=MainPID nfs-ganesha")
    host.check_output(f"sed -i 's/192.0.2.7/127.0.0.1/' {EXPORTS}")
    host.check_output("systemctl reload nfs-ganesha")
    until(host, f"nfs-ls {url('127.0.0.1', '/share/data')}")
    assert "kept" in names(host, address, "/share/data")
    assert host.check_output("systemctl show --property=MainPID nfs-ganesha") == before
