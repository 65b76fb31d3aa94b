"""The programs are there that the kubelet calls to mount."""

from __future__ import annotations

from testinfra.host import Host


def test_the_kubelet_finds_what_mounts_nfs(host: Host) -> None:
    assert host.ansible.get_variables()["storage_client_packages"] == ["nfs-common"]
    assert host.package("nfs-common").is_installed
    assert host.file("/sbin/mount.nfs").mode & 0o111


def test_the_admins_configuration_stays(host: Host) -> None:
    assert host.file("/etc/default/nfs-common").content_string == "# of the admin\nNEED_STATD=no\n"
