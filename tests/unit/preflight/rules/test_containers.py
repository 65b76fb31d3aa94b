"""Left-overs: other clusters, pod networks, Dockers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.site import Site
from tests.unit.preflight.machines import CONFIG, RUNNING_DOCKER, findings_of, installed, read_site


@pytest.mark.parametrize(
    ("left", "word"),
    [
        ({"files": ["/etc/kubernetes/kubelet.conf"]}, "another installer"),
        ({"other": ["/var/lib/rancher/k3s"]}, "another Kubernetes distribution"),
        ({"etcd_entries": 1}, "/var/lib/etcd is not empty"),
    ],
)
def test_another_cluster(site: Site, left: dict[str, Any], word: str) -> None:
    found = findings_of(site, "kubernetes", {"master": {"kubernetes": left}})["master"]
    assert found.verdict is Verdict.FAIL
    assert word in found.message
    assert found.remedy


def test_etcds_folder_on_a_worker_is_nobodys(site: Site) -> None:
    assert (
        findings_of(site, "kubernetes", {"worker1": {"kubernetes": {"etcd_entries": 3}}})["worker1"].verdict == "PASS"
    )


@pytest.mark.parametrize("done", [True, False])
def test_an_interrupted_installation_of_ours(site: Site, done: bool) -> None:
    left = {"marker": {"state": "join", "done": done}, "files": []}
    found = findings_of(site, "kubernetes", {"worker1": {"kubernetes": left}})["worker1"]
    assert found.verdict is Verdict.PASS
    assert "interrupted" in found.message


def test_a_node_of_another_cluster_of_ours(site: Site) -> None:
    left = {"kubernetes": {"authority": "another"}}
    found = findings_of(site, "kubernetes", {"worker1": left}, installed)
    assert [found[name].verdict for name in ("master", "worker1", "worker2")] == ["PASS", "FAIL", "PASS"]
    assert "kubeadm reset" in found["worker1"].remedy


@pytest.mark.parametrize(
    ("cni", "verdict"),
    [
        (["10-containerd-net.conflist"], "WARN"),
        (["10-calico.conflist"], "WARN"),
        (["87-podman-bridge.conflist"], "WARN"),
        ([], "PASS"),
    ],
)
def test_pod_network(site: Site, cni: list[str], verdict: str) -> None:
    """Also a file of an earlier cluster of ours, with its addresses: containerd reads another folder."""
    assert findings_of(site, "pod-network", {"worker1": {"kubernetes": {"cni": cni}}})["worker1"].verdict == verdict


@pytest.mark.parametrize(
    ("packages", "wanted", "verdict"),
    [
        ({}, "distribution", "PASS"),
        ({"docker.io": "20.10"}, "distribution", "PASS"),
        ({"docker-ce": "28.0"}, "distribution", "FAIL"),
        ({"docker-ce": "28.0"}, "docker-ce", "PASS"),
        ({"docker.io": "20.10"}, "docker-ce", "FAIL"),
        ({"podman-docker": "4.3"}, "distribution", "FAIL"),
    ],
)
def test_docker_packages(tmp_path: Path, packages: dict[str, str], wanted: str, verdict: str) -> None:
    site = read_site(tmp_path / "s", config=f"{CONFIG}docker_packages: {wanted}\n")
    found = findings_of(site, "docker-packages", {"worker1": {"packages": packages}})["worker1"]
    assert found.verdict == verdict


@pytest.mark.parametrize("wanted", ["distribution", "docker-ce"])
@pytest.mark.parametrize(
    ("program", "package", "word"),
    [
        ("/usr/bin/dockerd", "moby-engine", "moby-engine"),
        ("/usr/bin/dockerd", "docker-ee", "docker-ee"),
        ("/usr/local/bin/dockerd", "", "no package"),
    ],
)
def test_docker_of_packages_that_apt_would_fight_with(
    tmp_path: Path, wanted: str, program: str, package: str, word: str
) -> None:
    site = read_site(tmp_path / "s", config=f"{CONFIG}docker_packages: {wanted}\n")
    docker = {**RUNNING_DOCKER, "containers": 2, "program": program, "package": package}
    changes = {"docker": docker, "packages": {package: "20.10"} if package else {}}
    found = findings_of(site, "docker-packages", {"worker1": changes})["worker1"]
    assert found.verdict is Verdict.FAIL
    assert program in found.value
    assert word in found.value
    assert found.remedy


def test_docker_whose_owner_is_not_known_does_not_pass(site: Site) -> None:
    docker = {**RUNNING_DOCKER, "containers": 2, "package": None}
    found = findings_of(site, "docker-packages", {"worker1": {"docker": docker}})["worker1"]
    assert found.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("package", ["docker-ce-cli", "nvidia-docker2", "moby-containerd"])
def test_packages_beside_docker_are_told(site: Site, package: str) -> None:
    found = findings_of(site, "docker-packages", {"worker1": {"packages": {package: "1"}}})["worker1"]
    assert found.verdict is Verdict.WARN
    assert package in found.value


@pytest.mark.parametrize(("count", "verdict"), [(2, "FAIL"), (0, "PASS"), (None, "UNKNOWN")])
def test_containers_that_hold_gpus(site: Site, count: int | None, verdict: str) -> None:
    """A reload of systemd may take the devices away from them; without root they are not seen."""
    changes = {"worker1": {"devices": {"gpu_containers": count}}}
    found = findings_of(site, "gpu-containers", changes)["worker1"]
    assert found.verdict == verdict
    if verdict == "FAIL":
        assert "2 containers" in found.message
        assert "--force-check gpu-containers" in found.remedy


def test_containers_on_a_node_of_ours_may_hold_gpus(site: Site) -> None:
    """What an apply would reload there, its plan says; an interrupted installation goes on with everything."""
    changes = {"worker1": {"devices": {"gpu_containers": 2}}}
    assert findings_of(site, "gpu-containers", changes, installed)["worker1"].verdict is Verdict.PASS
    begun = {"worker1": {**changes["worker1"], "kubernetes": {"marker": {"state": "join", "done": False}}}}
    assert findings_of(site, "gpu-containers", begun, installed)["worker1"].verdict is Verdict.FAIL


def test_docker_as_a_snap(site: Site) -> None:
    found = findings_of(site, "docker-packages", {"worker1": {"docker": {"snap": True}}})["worker1"]
    assert found.verdict is Verdict.FAIL
    assert "snap remove" in found.remedy


@pytest.mark.parametrize(
    ("docker", "verdict", "word"),
    [
        ({"daemon_json": "Expecting value: line 1 column 2"}, "FAIL", "daemon.json is not valid"),
        ({"running": True, "containers": 0, "data_root": "/var/lib/docker"}, "PASS", "runs no containers"),
        ({"running": True, "containers": 4, "data_root": "/var/lib/docker"}, "WARN", "4 containers run"),
        ({"running": True, "containers": 1, "data_root": "/var/lib/docker"}, "WARN", "1 container runs"),
        ({"running": True, "containers": None, "data_root": "/var/lib/docker"}, "WARN", "unknown number"),
        ({"running": True, "containers": 0, "data_root": "/data/docker"}, "WARN", "lose sight"),
        ({"running": True, "containers": 4, "data_root": "/data/docker"}, "FAIL", "lose sight"),
        ({"running": True, "containers": None, "data_root": "/data/docker"}, "FAIL", "lose sight"),
        ({"running": True, "containers": 4, "data_root": "/var/lib/docker", "swarm": True}, "FAIL", "swarm"),
        ({"running": False}, "PASS", "no Docker runs"),
    ],
)
def test_docker_in_use(site: Site, docker: dict[str, Any], verdict: str, word: str) -> None:
    known = RUNNING_DOCKER if docker.get("running") else {}
    found = findings_of(site, "docker", {"worker1": {"docker": {**known, **docker}}})["worker1"]
    assert found.verdict == verdict
    assert word in found.message


@pytest.mark.parametrize(
    ("docker", "verdict"),
    [
        ({"cgroup_parent": "/jobs"}, "FAIL"),
        ({"cgroup_parent": ".slice"}, "FAIL"),
        ({"cgroup_parent": "jobs.slice"}, "PASS"),
        ({"daemon_json": "it is not a mapping", "cgroup_parent": "/jobs"}, "PASS"),
        ({**RUNNING_DOCKER, "own_parents": {"0a1b": "/jobs"}}, "WARN"),
        ({**RUNNING_DOCKER, "own_parents": {"0a1b": "/jobs"}, "cgroup_parent": "/jobs"}, "FAIL"),
        (RUNNING_DOCKER, "PASS"),
    ],
)
def test_control_groups_that_docker_will_refuse(site: Site, docker: dict[str, Any], verdict: str) -> None:
    assert findings_of(site, "docker-cgroups", {"worker1": {"docker": docker}})["worker1"].verdict == verdict


def test_control_groups_in_a_container_with_version_1(site: Site) -> None:
    """There Docker keeps the driver cgroupfs, which takes any path."""
    old = {"cgroups": {"version": 1, "controllers": []}, "docker": {"running": False, "cgroup_parent": "/x"}}
    assert findings_of(site, "docker-cgroups", {"worker1": old})["worker1"].verdict is Verdict.FAIL
    inside = {**old, "identity": {"container": "systemd-nspawn"}}
    assert findings_of(site, "docker-cgroups", {"worker1": inside})["worker1"].verdict is Verdict.SKIP


@pytest.mark.parametrize(
    ("containerd", "verdict", "word"),
    [
        ({"running": True, "old_shims": 2}, "FAIL", "would lose them"),
        ({"config": "Invalid statement (at line 3, column 1)"}, "FAIL", "config.toml is not valid"),
        ({"running": True, "tasks": {"default": 2}}, "WARN", "outside Docker and Kubernetes"),
        ({"running": True}, "PASS", "runs"),
        ({}, "PASS", "does not run"),
    ],
)
def test_containerd_that_is_there(site: Site, containerd: dict[str, Any], verdict: str, word: str) -> None:
    found = findings_of(site, "containerd", {"worker1": {"containerd": containerd}})["worker1"]
    assert found.verdict == verdict
    assert word in found.message


def test_our_own_docker_may_be_busy(site: Site) -> None:
    busy = {"worker1": {"docker": {"containers": 40, "data_root": "/elsewhere"}}}
    assert findings_of(site, "docker", busy, installed)["worker1"].verdict is Verdict.PASS


@pytest.mark.parametrize("changes", [{"packages": {"kubelet": "1.30"}}, {"kubernetes": {"kubelet_running": True}}])
def test_another_kubelet(site: Site, changes: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    found = findings_of(site, "kubernetes", {"worker1": changes})["worker1"]
    assert found.verdict is Verdict.WARN
    assert found.message == snapshot
    assert findings_of(site, "kubernetes", {"worker1": changes}, installed)["worker1"].verdict is Verdict.PASS
