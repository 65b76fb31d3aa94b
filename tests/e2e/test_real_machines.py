"""Machines as they are found elsewhere, made of mix-ins: what preflight says, and a cluster on docker-ce."""

from __future__ import annotations

import json
import os
import pwd
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.layouts import worker_entry

from .conftest import Cluster, lab_of, machines

pytestmark = [pytest.mark.lab, pytest.mark.soak]

# a network of their own
SUBNET = "172.30.74"
MASTER, DEBIAN_12, WORKER, BEHIND = "lab-master", "lab-worker1", "lab-worker2", "lab-worker3"
SETTINGS = """
docker_packages: docker-ce
containerd_data_root: /mnt/containerd
"""
LISTS = {
    MASTER: ("docker-ce-apt-key", "/etc/apt/trusted.gpg.d/docker.asc"),
    DEBIAN_12: ("docker-ce-gpg", "/etc/apt/keyrings/docker.gpg"),
    WORKER: ("docker-ce-asc", "/etc/apt/keyrings/docker.asc"),
    BEHIND: ("docker-ce-shared", "/usr/share/keyrings/docker-archive-keyring.gpg"),
}
# what else is there before: in this order, since nothing reaches a machine behind the bastion afterwards
FURTHER = {
    MASTER: ("resolved-stub",),
    DEBIAN_12: ("needrestart",),
    WORKER: ("no-default-route",),
    BEHIND: ("behind-bastion",),
}
# a service of the admin's that needrestart would restart
AT_WORK = "systemctl show --property=MainPID --value at-work.service"
ANOTHER = worker_entry(BEHIND, f"{SUBNET}.14", "lab-gpu")


def verdicts(cluster: Cluster) -> dict[tuple[str, str], str]:
    """Machine and check -> verdict of preflight."""
    report: dict[str, Any] = json.loads(cluster.run("preflight", "--format", "json").stdout)
    return {(finding["subject"], finding["id"]): finding["verdict"] for finding in report["findings"]}


@pytest.fixture(scope="class")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], str]]:
    """What preflight says of all machines."""
    words = [
        *(f"--with={MASTER}=no-default-route", f"--with={DEBIAN_12}=moby-engine", f"--suite={DEBIAN_12}=bookworm"),
        *(f"--with={WORKER}={name}" for name in ("cni-stale", "broken-apt-source", "no-default-route")),
    ]
    with machines(tmp_path_factory.mktemp("site"), SUBNET, *words) as cluster:
        yield verdicts(cluster)


class TestPreflight:
    """Nothing is installed."""

    def test_a_docker_of_other_packages_is_refused(self, found: dict[tuple[str, str], str]) -> None:
        assert found[DEBIAN_12, "docker-packages"] == "FAIL"

    def test_what_an_earlier_cluster_left_is_refused(self, found: dict[tuple[str, str], str]) -> None:
        assert found[WORKER, "leftovers"] == "FAIL"

    def test_a_source_that_ended_is_a_warning(self, found: dict[tuple[str, str], str]) -> None:
        assert found[WORKER, "package-sources"] == "WARN"

    def test_no_default_route_matters_to_a_control_plane(self, found: dict[tuple[str, str], str]) -> None:
        assert (found[MASTER, "service-route"], found[WORKER, "service-route"]) == ("FAIL", "WARN")


@contextmanager
def by_a_jump(cluster: Cluster) -> Iterator[None]:
    """What an admin has in ~/.ssh/config for a machine behind another one; afterwards it is as it was."""
    spec, config = lab_of(cluster.site), Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".ssh/config"
    before = config.read_text() if config.exists() else None
    jump = f"""Host {spec.machine(BEHIND).address}
    ProxyJump lab-bastion
Host lab-bastion
    HostName {spec.machine(MASTER).address}
    User {spec.user}
    IdentityFile {spec.key_file}
    UserKnownHostsFile {spec.known_hosts}
"""
    is_new = not config.parent.exists()
    config.parent.mkdir(mode=0o700, exist_ok=True)
    config.write_text(jump + (before or ""))
    try:
        yield
    finally:
        config.unlink() if before is None else config.write_text(before)
        if is_new:
            config.parent.rmdir()


@pytest.fixture(scope="class")
def at_work() -> dict[str, str]:
    """Process of the admin's service, as it was before the installation; filled by `cluster`."""
    return {}


@pytest.fixture(scope="class")
def cluster(tmp_path_factory: pytest.TempPathFactory, at_work: dict[str, str]) -> Iterator[Cluster]:
    """Verified by its installation."""
    words = [f"--with={machine}={name}" for machine, (name, _key) in LISTS.items()]
    words += [f"--with={machine}={name}" for machine, names in FURTHER.items() for name in names]
    words += [f"--suite={DEBIAN_12}=bookworm"]
    folder = tmp_path_factory.mktemp("site")
    with (
        machines(folder, SUBNET, *words, settings=SETTINGS, layout=lambda text: text.rstrip() + ANOTHER) as made,
        by_a_jump(made),
    ):
        at_work[DEBIAN_12] = made.on(DEBIAN_12, AT_WORK)
        report = made.apply("--force-check", "etcd-disk")
        assert report["ok"], report["stderr"]
        yield made


class TestDockersOwnPackages:
    """A cluster on stand-ins of docker-ce: images of pods on another disk, a worker without a default route and one
    behind a bastion, a control plane with systemd-resolved.
    """

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

    def test_a_machine_behind_a_bastion_is_a_node_like_others(self, cluster: Cluster) -> None:
        with pytest.raises(TimeoutError):
            socket.create_connection((f"{SUBNET}.14", 22), timeout=3)
        words = ("get", "node", BEHIND, "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}")
        assert cluster.kubectl(*words) == "True"

    def test_needrestart_restarted_nothing_of_the_admin_s(self, cluster: Cluster, at_work: dict[str, str]) -> None:
        assert cluster.on(DEBIAN_12, AT_WORK) == at_work[DEBIAN_12]
        cluster.on(DEBIAN_12, "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install bc")
        assert cluster.on(DEBIAN_12, AT_WORK) != at_work[DEBIAN_12]  # so it would have

    def test_the_file_of_resolved_is_given_to_pods_where_it_is(self, cluster: Cluster) -> None:
        """kubeadm gives that of the first control plane to all of them."""
        kept = cluster.kubectl("get", "configmap", "kubelet-config", "--namespace=kube-system", "--output=yaml")
        assert "resolvConf: /run/systemd/resolve/resolv.conf" in kept
        assert "--resolv-conf" not in cluster.on(MASTER, "cat /etc/default/kubelet")
        for machine in (DEBIAN_12, WORKER, BEHIND):
            cluster.on(machine, "test ! -e /run/systemd/resolve/resolv.conf")
            assert "--resolv-conf=/etc/resolv.conf" in cluster.on(machine, "cat /etc/default/kubelet")

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
