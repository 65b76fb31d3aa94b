"""Ubuntu and Debian in one cluster: with Debian's control plane, and with Ubuntu's. Skipped without a way to Ubuntu."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pai_install.lab.suite import no_archive

from .conftest import Cluster, machines

pytestmark = [pytest.mark.lab, pytest.mark.soak]

# a network of their own
SUBNET = "172.30.73"
MASTER, FIRST, SECOND = "lab-master", "lab-worker1", "lab-worker2"
# a service of the admin's that needrestart would restart
AT_WORK = "systemctl show --property=MainPID --value at-work.service"
RESOLVED = "/run/systemd/resolve/resolv.conf"


@contextmanager
def made(factory: pytest.TempPathFactory, *words: str) -> Iterator[Cluster]:
    """Machines that are made by these words; skipped where Ubuntu's archive does not answer."""
    for suite in ("noble", "jammy"):
        if why := no_archive(suite):
            pytest.skip(f"cannot reach Ubuntu's archive of {suite}: {why}")
    with machines(factory.mktemp("site"), SUBNET, *words) as cluster:
        yield cluster


def nameservers(cluster: Cluster, machine: str) -> list[str]:
    """The resolvers that a pod is given that asks those of its machine, as the cluster's own DNS does."""
    image = cluster.on(machine, "/usr/local/bin/ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    pod, place = f"asks-{machine}", json.dumps({"spec": {"nodeName": machine, "dnsPolicy": "Default"}})
    words = ("--restart=Never", f"--overrides={place}", "--command", "--", "/bin/busybox", "cat", "/etc/resolv.conf")
    cluster.kubectl("run", pod, f"--image={image}", *words)
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{pod}", "--timeout=120s")
    said = cluster.kubectl("logs", pod)
    return [line.split()[1] for line in said.splitlines() if line.startswith("nameserver ")]


def reaches_out(servers: list[str]) -> bool:
    """Whether resolvers are no addresses of the pod itself."""
    return bool(servers) and not any(server.startswith("127.") for server in servers)


def test_ubuntu_joins_debian(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Debian's control plane, whose machine has no systemd-resolved; workers of both Ubuntus."""
    words = (f"--suite={FIRST}=noble", f"--suite={SECOND}=jammy")
    mixed = (f"--with={FIRST}=resolved-stub", f"--with={FIRST}=needrestart")
    with made(tmp_path_factory, *words, *mixed) as cluster:
        assert "127.0.0.53" in cluster.on(FIRST, "cat /etc/resolv.conf")
        before = cluster.on(FIRST, AT_WORK)
        report = cluster.apply("--force-check", "etcd-disk")
        assert report["ok"], report["stderr"]
        # needrestart restarted nothing of the admin's, and would have: the next package does
        assert cluster.on(FIRST, AT_WORK) == before
        cluster.on(FIRST, "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install bc")
        assert cluster.on(FIRST, AT_WORK) != before
        for machine in (FIRST, SECOND):
            assert "ubuntu" in cluster.on(machine, "dpkg-query -W -f '${Version}' docker.io")
            assert reaches_out(nameservers(cluster, machine))
        assert cluster.to_change() == []


def test_debian_joins_ubuntu(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ubuntu's control plane with systemd-resolved; workers of Debian, without it, and of the older Ubuntu."""
    words = (f"--suite={MASTER}=noble", f"--suite={SECOND}=jammy", f"--with={MASTER}=resolved-stub")
    with made(tmp_path_factory, *words) as cluster:
        report = cluster.apply("--force-check", "etcd-disk")
        assert report["ok"], report["stderr"]
        # kubeadm says the same to all of them, and one has no such file
        kept = cluster.kubectl("get", "configmap", "kubelet-config", "--namespace=kube-system", "--output=yaml")
        assert f"resolvConf: {RESOLVED}" in kept
        cluster.on(FIRST, f"test ! -e {RESOLVED}")
        for machine in (FIRST, SECOND):
            assert reaches_out(nameservers(cluster, machine))
        assert cluster.to_change() == []
