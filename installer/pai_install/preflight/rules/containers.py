"""What earlier installations left: another cluster, another Docker, another pod network."""

from __future__ import annotations

from pai_install.checks.result import Result, failed, passed, unknown, warned
from pai_install.preflight.model import Case, machine_check

_OWN_CNI = "10-containerd-net.conflist"


@machine_check(
    id="kubernetes",
    title="No other Kubernetes cluster on the machine",
    reads="kubernetes: files of kubeadm, other distributions, etcd, our own record; packages; the authority of "
    "the first control plane",
    rule="FAIL for a cluster that is not this one; WARN for a kubelet of another origin",
    remedy="if nothing on it is needed: sudo kubeadm reset --force on this machine; or take it out of the site",
)
def cluster(case: Case) -> Result | None:
    """The machine is a node of this cluster or of none."""
    seen = case.evidence.kubernetes
    if seen.other:
        return failed(
            "another Kubernetes distribution lives here",
            value=", ".join(seen.other),
            expected="none",
            remedy="if nothing on it is needed, remove it by its own uninstaller (k3s-uninstall.sh, snap remove ...)",
        )
    if seen.files and not seen.marker and seen.authority and seen.authority == _authority(case):
        return failed(
            "the machine was a node of this cluster, and pai-install's own record of that is gone",
            value=", ".join(seen.files[:4]),
            expected="no cluster, or a node with /var/lib/pai-install/kubeadm.json",
            remedy="sudo kubeadm reset --force on this machine; apply joins it again",
        )
    if seen.files and not seen.marker:
        return failed(
            "the machine belongs to a Kubernetes cluster that pai-install did not make",
            value=", ".join(seen.files[:4]),
            expected="no cluster, or this one",
        )
    if seen.etcd_entries and case.machine.control_plane and not seen.marker:
        remedy = "move /var/lib/etcd away if nothing in it is needed"
        return failed(
            "/var/lib/etcd is not empty", value=f"{seen.etcd_entries} entries", expected="empty", remedy=remedy
        )
    packaged = "kubelet" in case.evidence.packages
    if (packaged or seen.kubelet_running) and not seen.marker:
        remedy = "sudo apt-get remove kubelet kubeadm on this machine: ours comes from the component store"
        value = "package kubelet" if packaged else "a kubelet runs"
        return warned("another kubelet is installed; ours takes its place", value=value, expected="none", remedy=remedy)
    return _membership(case)


def _membership(case: Case) -> Result:
    seen = case.evidence.kubernetes
    if not seen.marker:
        return passed(message="no cluster was here")
    if not seen.member:
        message = "an interrupted installation of ours; apply continues it"
        return passed(seen.marker.get("state", ""), message=message)
    leader = case.fleet.evidence.get(case.fleet.leader)
    if not seen.authority or leader is None or not leader.has("kubernetes"):
        blind = case.fleet.leader if seen.authority else "the machine"
        return unknown(f"the certificate of the cluster could not be read on {blind}, so it cannot be compared")
    reference = _authority(case)
    if reference and seen.authority != reference:
        return failed(
            f"it is a node of another cluster of pai-install than {case.fleet.leader}",
            value=f"certificate {seen.authority}",
            expected=f"certificate {reference}",
            remedy="take it out of that cluster first: sudo kubeadm reset --force on this machine",
        )
    return passed(seen.authority, message="a node of this cluster")


def _authority(case: Case) -> str:
    """The digest of this cluster's certificate; empty when the first control plane has none or gave no evidence."""
    leader = case.fleet.evidence.get(case.fleet.leader)
    return leader.kubernetes.authority if leader is not None and leader.has("kubernetes") else ""


@machine_check(
    id="pod-network",
    title="No other CNI configuration before ours",
    reads="kubernetes: /etc/cni/net.d",
    rule="FAIL when one comes first by name, WARN when one lies beside ours",
    source="containerd",
    remedy="move them out of /etc/cni/net.d",
)
def pod_network(case: Case) -> Result | None:
    """No other pod network's configuration comes first."""
    seen = case.evidence.kubernetes
    foreign = [name for name in seen.cni if name != _OWN_CNI]
    first = [name for name in foreign if name < _OWN_CNI]
    if first:
        shown = ", ".join(first)
        message = "the configuration of another pod network would be used in place of ours"
        return failed(message, value=shown, expected=_OWN_CNI)
    if foreign:
        message = "configurations of other pod networks lie beside ours; ours is used"
        return warned(message, value=", ".join(foreign), expected=_OWN_CNI)
    return passed(message="no other pod network")


@machine_check(
    id="docker-packages",
    title="Docker, if any, from the packages that docker_packages says",
    reads="packages; docker: a snap",
    rule="FAIL for a snap, podman-docker, or packages of the other origin",
    remedy="write docker_packages as it is installed in config.yaml, or remove Docker on this machine first",
)
def docker_packages(case: Case) -> Result | None:
    """Docker, where it is already there, comes from where the site says."""
    packages = case.evidence.packages
    if case.evidence.docker.snap:
        remedy = "sudo snap remove docker on this machine (its containers and images go with it)"
        return failed("Docker is installed as a snap, which cannot use our containerd", value="snap",
                      expected=case.site.settings.docker_packages, remedy=remedy)  # fmt: skip
    if "podman-docker" in packages:
        remedy = "sudo apt-get remove podman-docker on this machine"
        return failed("podman takes Docker's place", value="podman-docker", expected="Docker Engine", remedy=remedy)
    wanted = case.site.settings.docker_packages
    there = "docker-ce" if "docker-ce" in packages else "distribution" if "docker.io" in packages else ""
    if not there or there == wanted:
        return passed(there, message="Docker is not installed yet" if not there else f"Docker from {there} packages")
    return failed(
        f"Docker comes from {there} packages, the site asks for {wanted}",
        value=there,
        expected=wanted,
        remedy=f"write docker_packages: {there} in config.yaml, or remove Docker on this machine first",
    )


@machine_check(
    id="docker",
    title="Docker, if in use, can be taken over without loss",
    reads="docker: daemon.json, docker info; docker_data_root and docker_live_restore in config.yaml",
    rule="FAIL for a broken daemon.json, a swarm with live-restore, or images in another folder; WARN for "
    "running containers",
    remedy="correct the file on this machine: apply merges into it and cannot read it",
)
def docker(case: Case) -> Result | None:
    """A Docker that is in use can be taken over."""
    seen = case.evidence.docker
    if seen.daemon_json:
        return failed("/etc/docker/daemon.json is broken", value=seen.daemon_json, expected="JSON")
    if not seen.running or case.evidence.ours:
        return passed(seen.version, message="Docker is ours") if seen.running else passed(message="no Docker runs")
    wanted = str(case.site.settings.docker_data_root)
    running = f"{seen.containers if seen.containers is not None else 'unknown number of'} containers run"
    if seen.swarm and case.site.settings.docker_live_restore:
        remedy = "leave the swarm, or write docker_live_restore: false in config.yaml: containers then stop with Docker"
        message = "Docker is in a swarm, which does not go together with live-restore"
        return failed(message, value="swarm", expected="no swarm", remedy=remedy)
    if seen.data_root and seen.data_root != wanted:
        say = warned if seen.containers == 0 else failed
        return say(
            f"Docker keeps its data in {seen.data_root}, the site says {wanted}: images and containers would be left"
            " behind there",
            value=f"{seen.data_root}, {running}",
            expected=wanted,
            remedy=f"write docker_data_root: {seen.data_root} in config.yaml, or move the data",
        )
    if seen.containers == 0:
        return passed(seen.version, message="a Docker without running containers")
    return warned(
        f"Docker {seen.version} is in use: {running}",
        value=running,
        expected="none, or ones that you know of",
        remedy=_what_becomes_of_them(case),
    )


def _what_becomes_of_them(case: Case) -> str:
    if case.site.settings.docker_live_restore:
        return "nothing: they run on while apply restarts Docker (live-restore), and your daemon.json is merged"
    return "they stop when apply restarts Docker: write docker_live_restore: true in config.yaml to keep them running"


@machine_check(
    id="containerd",
    title="containerd, if in use, has a configuration that can be read",
    reads="containerd: config.toml, its tasks",
    rule="FAIL for a broken config.toml; WARN for containers outside Docker and Kubernetes",
    remedy="correct the file on this machine: apply merges into it and cannot read it",
)
def containerd(case: Case) -> Result | None:
    """A containerd that is there can be taken over."""
    seen = case.evidence.containerd
    if seen.config:
        return failed("/etc/containerd/config.toml is broken", value=seen.config, expected="TOML")
    if seen.tasks and not case.evidence.ours:
        shown = ", ".join(f"{count} in {name}" for name, count in sorted(seen.tasks.items()))
        remedy = "nothing: they run on while apply restarts containerd"
        return warned("containers of containerd run outside Docker and Kubernetes", value=shown, remedy=remedy)
    return passed(message="a containerd runs" if seen.running else "no containerd runs")
