"""Machines as they are found elsewhere, made of mix-ins: what preflight says, and a cluster on docker-ce."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Cluster, lab_site, pai_install, traces

pytestmark = [pytest.mark.lab, pytest.mark.soak]

# a network of their own
SUBNET = "172.30.74"
MASTER, DEBIAN_12, WORKER = "lab-master", "lab-worker1", "lab-worker2"
SETTINGS = """
docker_packages: docker-ce
containerd_data_root: /mnt/containerd
"""
LISTS = {
    MASTER: ("docker-ce-apt-key", "/etc/apt/trusted.gpg.d/docker.asc"),
    DEBIAN_12: ("docker-ce-gpg", "/etc/apt/keyrings/docker.gpg"),
    WORKER: ("docker-ce-asc", "/etc/apt/keyrings/docker.asc"),
}


def made(folder: Path, settings: str, *words: str) -> Cluster:
    """Machines of a site with these settings."""
    site = lab_site(folder, SUBNET)
    config = site / "config.yaml"
    config.write_text(config.read_text() + settings)
    up = pai_install("lab", "up", "--site", str(site), "--yes", *words, timeout_s=1800)
    assert up.returncode == 0, up.stderr
    return Cluster(site, up)


def removed(cluster: Cluster) -> None:
    """The lab is gone, and nothing of it is left."""
    assert cluster.run("lab", "down", "--yes").returncode == 0
    assert traces(SUBNET) == []


def verdicts(cluster: Cluster) -> dict[tuple[str, str], str]:
    """Machine and check -> verdict of preflight."""
    report: dict[str, Any] = json.loads(cluster.run("preflight", "--format", "json").stdout)
    return {(finding["subject"], finding["id"]): finding["verdict"] for finding in report["findings"]}


class TestPreflight:
    """Nothing is installed."""

    @pytest.fixture(scope="class")
    def found(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], str]]:
        """What preflight says of all machines."""
        words = [
            *(f"--with={MASTER}=no-default-route", f"--with={DEBIAN_12}=moby-engine", f"--suite={DEBIAN_12}=bookworm"),
            *(f"--with={WORKER}={name}" for name in ("cni-stale", "broken-apt-source", "no-default-route")),
        ]
        cluster = made(tmp_path_factory.mktemp("site"), "", *words)
        yield verdicts(cluster)
        removed(cluster)

    def test_a_docker_of_other_packages_is_refused(self, found: dict[tuple[str, str], str]) -> None:
        assert found[DEBIAN_12, "docker-packages"] == "FAIL"

    def test_what_an_earlier_cluster_left_is_refused(self, found: dict[tuple[str, str], str]) -> None:
        assert found[WORKER, "leftovers"] == "FAIL"

    def test_a_source_that_ended_is_a_warning(self, found: dict[tuple[str, str], str]) -> None:
        assert found[WORKER, "package-sources"] == "WARN"

    def test_no_default_route_matters_to_a_control_plane(self, found: dict[tuple[str, str], str]) -> None:
        assert (found[MASTER, "service-route"], found[WORKER, "service-route"]) == ("FAIL", "WARN")


class TestDockersOwnPackages:
    """A cluster on stand-ins of docker-ce, with images of pods on another disk and a worker without a default route."""

    @pytest.fixture(scope="class")
    def cluster(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
        """Verified by its installation."""
        words = [f"--with={machine}={name}" for machine, (name, _key) in LISTS.items()]
        further = [f"--suite={DEBIAN_12}=bookworm", f"--with={WORKER}=no-default-route"]
        cluster = made(tmp_path_factory.mktemp("site"), SETTINGS, *words, *further)
        report = cluster.apply()
        assert report["ok"], report["stderr"]
        yield cluster
        removed(cluster)

    def test_apt_still_reads_every_source(self, cluster: Cluster) -> None:
        """A second entry with another key would end every command of apt."""
        for machine, (_name, key) in LISTS.items():
            cluster.on(machine, "apt-get -q update")
            sources = cluster.on(machine, "grep -l download.docker.com /etc/apt/sources.list.d/*").split()
            assert sources == ["/etc/apt/sources.list.d/docker.list"]
            cluster.on(machine, f"test -e {key}")

    def test_docker_is_of_the_packages_that_were_there(self, cluster: Cluster) -> None:
        for machine in LISTS:
            assert "stand-in" in cluster.on(machine, "dpkg-query -W -f '${Version}' docker-ce")
            cluster.on(machine, "! dpkg-query -W -f '${Status}' docker.io 2>/dev/null | grep -q '^install ok'")

    def test_images_of_pods_are_on_the_disk_that_the_site_names(self, cluster: Cluster) -> None:
        for machine in LISTS:
            assert "root = '/mnt/containerd'" in cluster.on(machine, "/usr/local/bin/containerd config dump")
            cluster.on(machine, "test -d /mnt/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/1")
            assert "/mnt/containerd" in cluster.on(machine, "systemctl show containerd -p RequiresMountsFor")

    def test_a_node_does_not_lose_its_images_by_a_setting(self, cluster: Cluster) -> None:
        config = cluster.site / "config.yaml"
        before = config.read_text()
        config.write_text(before.replace("/mnt/containerd", "/mnt/elsewhere"))
        try:
            report = cluster.converge()
        finally:
            config.write_text(before)
        assert report["exit_code"] == 6
        assert "containerd_data_root: /mnt/containerd" in report["stderr"] + json.dumps(report)

    def test_nothing_is_left_to_do(self, cluster: Cluster) -> None:
        assert cluster.to_change() == []
