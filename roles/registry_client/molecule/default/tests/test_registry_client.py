"""Registries of the site beside those of the admin, in use without a restart of anything."""

from __future__ import annotations

import base64
import json
from typing import Any

from testinfra.host import Host

MIRRORS = ["https://of-the-admin.example/", "https://mirror.example/"]


def registries(host: Host) -> dict[str, Any]:
    """What the daemon uses."""
    found: dict[str, Any] = json.loads(host.check_output("docker info --format '{{json .RegistryConfig}}'"))
    return found


def test_docker_uses_both_mirrors_and_all_insecure_registries(host: Host) -> None:
    used = registries(host)
    assert used["Mirrors"] == MIRRORS
    insecure = {name for name, index in used["IndexConfigs"].items() if not index["Secure"]}
    assert insecure == {"plain.example:5000"}


def test_nothing_was_restarted_and_nothing_will_be(host: Host) -> None:
    now = host.check_output("pidof dockerd containerd")
    assert now == host.file("/root/started").content_string.strip()
    newer = 'find /etc/docker/daemon.json -newermt @$(date -d "$(systemctl show -P ActiveEnterTimestamp docker)" +%s)'
    assert host.check_output(newer) == "", "a restart for it would come with the next change of Docker"


def test_containerd_reads_its_files_and_the_admins_lies_beside_them(host: Host) -> None:
    folder = "/etc/containerd/certs.d"
    assert "https://mirror.example" in host.file(f"{folder}/docker.io/hosts.toml").content_string
    plain = host.file(f"{folder}/plain.example:5000/hosts.toml").content_string
    # some speak TLS all the same, with a certificate of their own making
    assert '[host."http://plain.example:5000"]' in plain
    assert plain.startswith('server = "https://plain.example:5000"\nskip_verify = true\n')
    assert "of-the-admin" in host.check_output(f"cat {folder}/docker.io/hosts.toml.*.pai-backup")


def test_login_of_the_site_stands_beside_the_admins(host: Host) -> None:
    for path in ("/root/.docker/config.json", "/var/lib/kubelet/config.json"):
        assert host.file(path).mode == 0o600
        auths = json.loads(host.file(path).content_string)["auths"]
        assert auths["harbor.example"] == {"auth": base64.b64encode(b"robot:of-the-lab").decode()}
    config = json.loads(host.file("/root/.docker/config.json").content_string)
    assert config["auths"]["of-the-admin.example"] == {"auth": "eDp5"}
    assert config["psFormat"] == "table"


def test_logins_are_in_no_journal(host: Host) -> None:
    token = base64.b64encode(b"robot:of-the-lab").decode()
    assert token not in host.check_output("journalctl --no-pager --output cat _COMM=python3 | tail -n 2000")
