"""What Kubernetes needs holds, also after a reboot, beside the admin's own settings."""

from __future__ import annotations

from testinfra.host import Host


def test_packets_are_forwarded(host: Host) -> None:
    assert host.sysctl("net.ipv4.ip_forward") == 1


def test_packets_are_forwarded_after_a_reboot(host: Host) -> None:
    """The admin's file has the last word over files whose names sort before it."""
    host.check_output("systemctl restart systemd-sysctl.service")
    assert host.sysctl("net.ipv4.ip_forward") == 1


def test_parameters_that_kubernetes_does_not_care_about_are_the_admins(host: Host) -> None:
    assert host.sysctl("net.ipv4.tcp_keepalive_time") == 600
    assert "tcp_keepalive_time = 600" in host.file("/etc/sysctl.d/99-company.conf").content_string


def test_names_of_the_cluster_and_of_the_company(host: Host) -> None:
    variables = host.ansible.get_variables()
    for address, names in {**variables["base_hosts"], "192.0.2.10": ["storage.company.example"]}.items():
        for name in names:
            assert address in host.check_output(f"getent ahostsv4 {name}").split()


def test_packages_can_be_found(host: Host) -> None:
    """The lists of packages were gone, and their folder was fresh."""
    assert "Candidate: (none)" not in host.check_output("apt-cache policy chrony")
    assert host.check_output("find /var/lib/apt/lists -name '*_Packages*'")


def test_packages_of_pods(host: Host) -> None:
    for name in ("conntrack", "socat", "nftables"):
        assert host.package(name).is_installed
