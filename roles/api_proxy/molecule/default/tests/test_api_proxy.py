"""A proxy of its own to the control planes, beside an HAProxy that somebody already uses."""

from __future__ import annotations

from testinfra.host import Host


def test_the_proxy_listens_on_this_machine_alone(host: Host) -> None:
    assert host.service("pai-api-proxy").is_running
    assert host.service("pai-api-proxy").is_enabled
    assert host.socket("tcp://127.0.0.1:7443").is_listening
    assert not host.socket("tcp://0.0.0.0:7443").is_listening


def test_it_asks_all_control_planes(host: Host) -> None:
    configuration = host.file("/etc/pai-install/api-proxy.cfg").content_string
    for name, address in host.ansible.get_variables()["api_proxy_servers"].items():
        assert f"server {name} {address}:6443" in configuration


def test_the_admins_proxy_goes_on(host: Host) -> None:
    assert host.service("haproxy").is_running
    assert host.service("haproxy").is_enabled
    assert host.file("/run/haproxy.pid").content == host.file("/root/company-haproxy.pid").content
    assert host.socket("tcp://127.0.0.1:8404").is_listening
    assert host.file("/etc/haproxy/haproxy.cfg").content_string.startswith("# by hand")


def test_what_talks_to_the_network_is_not_root(host: Host) -> None:
    assert host.check_output("pgrep --count --uid haproxy --full /etc/pai-install/api-proxy.cfg") != "0"
    assert "chroot /var/lib/haproxy" in host.file("/etc/pai-install/api-proxy.cfg").content_string
