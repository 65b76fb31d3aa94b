"""Earlier installations: another cluster, another Docker, another pod network."""

from __future__ import annotations

from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.preflight.model import Case, machine_check


@machine_check(
    id="kubernetes",
    title="No other Kubernetes cluster on the machine",
    reads=(
        "kubernetes: files of kubeadm, other distributions, etcd, pai-install's record, packages, and the authority "
        "of the first control plane"
    ),
    rule="FAIL for another cluster. WARN for a kubelet from another source",
    remedy="run sudo kubeadm reset --force on the machine if you need nothing on it, or remove the machine from "
    "layout.yaml",
)
def cluster(case: Case) -> Result | None:
    """The machine is a node of this cluster or of none."""
    seen = case.evidence.kubernetes
    if seen.other:
        return failed(
            "another Kubernetes distribution is installed",
            value=", ".join(seen.other),
            expected="none",
            remedy="run the distribution's uninstaller (k3s-uninstall.sh, snap remove ...) if you need nothing on the "
            "machine",
        )
    if seen.files and not seen.marker and seen.authority and seen.authority == _authority(case):
        return failed(
            "the machine was a node of this cluster, but pai-install's record is missing",
            value=", ".join(seen.files[:4]),
            expected="no cluster, or a node with /var/lib/pai-install/kubeadm.json",
            remedy="run sudo kubeadm reset --force on this machine. The next apply joins it again",
        )
    if seen.files and not seen.marker:
        return failed(
            "the machine belongs to a Kubernetes cluster of another installer",
            value=", ".join(seen.files[:4]),
            expected="no cluster, or this one",
        )
    if seen.etcd_entries and case.machine.control_plane and not seen.marker:
        remedy = "move /var/lib/etcd away if you do not need its content"
        return failed(
            "/var/lib/etcd is not empty", value=f"{seen.etcd_entries} entries", expected="empty", remedy=remedy
        )
    packaged = "kubelet" in case.evidence.packages
    if (packaged or seen.kubelet_running) and not seen.marker:
        remedy = "run sudo apt-get remove kubelet kubeadm on this machine. apply installs both from the component store"
        value = "package kubelet" if packaged else "a kubelet runs"
        return warned(
            "a kubelet from another source is installed, and apply will replace it",
            value=value,
            expected="none",
            remedy=remedy,
        )
    return _membership(case)


def _membership(case: Case) -> Result:
    seen = case.evidence.kubernetes
    if not seen.marker:
        return passed(message="no earlier cluster")
    if not seen.member:
        message = "pai-install was interrupted during the installation of the machine, and apply continues it"
        return passed(seen.marker.get("state", ""), message=message)
    leader = case.fleet.evidence.get(case.fleet.leader)
    if not seen.authority or leader is None or not leader.has("kubernetes"):
        blind = case.fleet.leader if seen.authority else "the machine"
        return unknown(f"cannot compare: the cluster's certificate could not be read on {blind}")
    reference = _authority(case)
    if reference and seen.authority != reference:
        return failed(
            f"the machine is a node of another pai-install cluster, not of {case.fleet.leader}'s",
            value=f"certificate {seen.authority}",
            expected=f"certificate {reference}",
            remedy="remove the machine from that cluster first. Run sudo kubeadm reset --force on this machine",
        )
    return passed(seen.authority, message="a node of this cluster")


def _authority(case: Case) -> str:
    """Returns the digest of this cluster's certificate, or "" without one or without evidence of the first
    control-plane node.
    """
    leader = case.fleet.evidence.get(case.fleet.leader)
    return leader.kubernetes.authority if leader is not None and leader.has("kubernetes") else ""


@machine_check(
    id="pod-network",
    title="No other pod network is configured",
    reads="kubernetes: /etc/cni/net.d",
    rule="WARN for any file: containerd will ignore it",
    source="containerd",
    remedy="no action is required, unless programs outside Kubernetes use that network through containerd",
)
def pod_network(case: Case) -> Result | None:
    """containerd reads a folder of pai-install's own: files of podman, CRI-O or an earlier cluster do no harm."""
    foreign = case.evidence.kubernetes.cni
    if foreign:
        message = "configurations of another pod network exist, and containerd will ignore them"
        return warned(message, value=", ".join(foreign), expected="none")
    return passed(message="no other pod network")


_DOCKER_PACKAGES = ("docker.io", "docker-ce")
# without a daemon they are no Docker, and yet in apt's way
_BESIDE = ("docker-ce-cli", "docker-ee", "moby-engine", "moby-containerd", "nvidia-docker2")


@machine_check(
    id="docker-packages",
    title="Docker, if installed, comes from the packages in docker_packages",
    reads="packages, docker: a snap, dockerd and its package (dpkg --search)",
    rule="FAIL for a snap, podman-docker, packages from the other source, or a dockerd of another package or of none. "
    "WARN for packages that apt would remove, or that own daemon.json",
    remedy="set docker_packages in config.yaml to the installed packages, or remove Docker on this machine first",
)
def docker_packages(case: Case) -> Result | None:
    """Docker, if installed, comes from the packages that the site names."""
    packages = case.evidence.packages
    if case.evidence.docker.snap:
        remedy = "run sudo snap remove docker on this machine (deletes Docker's containers and images)"
        return failed("Docker is installed as a snap, which cannot use the node's containerd", value="snap",
                      expected=case.site.settings.docker_packages, remedy=remedy)  # fmt: skip
    if "podman-docker" in packages:
        remedy = "run sudo apt-get remove podman-docker on this machine"
        return failed(
            "podman-docker replaces the docker command", value="podman-docker", expected="Docker Engine", remedy=remedy
        )
    return _foreign_docker(case) or _other_source(case)


def _foreign_docker(case: Case) -> Result | None:
    seen, packages = case.evidence.docker, case.evidence.packages
    if seen.program and seen.package is None:
        return unknown(f"{seen.program} exists, and dpkg does not report its package")
    if seen.program and seen.package not in _DOCKER_PACKAGES:
        remedy = (
            "wait for its containers and remove it on this machine. apply installs Docker. Images and volumes remain in"
        )
        return failed(
            "Docker belongs to neither docker.io nor docker-ce: apt would remove it or fail",
            value=f"{seen.program} of {seen.package or 'no package'}",
            expected="dockerd of docker.io or docker-ce, or none",
            remedy=f"{remedy} its data root, which docker_data_root can name",
        )
    beside = [name for name in _BESIDE if name in packages]
    if beside and not seen.program:
        message = "packages of another Docker are installed, and apt will remove conflicting packages"
        return warned(message, value=", ".join(beside), expected="none", remedy=_write_or_remove(beside))
    return None


def _write_or_remove(packages: list[str]) -> str:
    remove = f"sudo apt-get remove {' '.join(packages)} on this machine"
    return f"write docker_packages: docker-ce in config.yaml, or: {remove}" if "docker-ce-cli" in packages else remove


def _other_source(case: Case) -> Result:
    packages = case.evidence.packages
    wanted = case.site.settings.docker_packages
    there = "docker-ce" if "docker-ce" in packages else "distribution" if "docker.io" in packages else ""
    if not there or there == wanted:
        return passed(there, message="Docker is not installed yet" if not there else f"Docker from {there} packages")
    return failed(
        f"Docker comes from {there} packages, but docker_packages is {wanted}",
        value=there,
        expected=wanted,
        remedy=f"set docker_packages: {there} in config.yaml, or remove Docker on this machine first",
    )


@machine_check(
    id="docker",
    title="Docker, if in use, can be taken over without data loss",
    reads="docker: daemon.json, docker info, and docker_data_root and docker_live_restore in config.yaml",
    rule="FAIL for an invalid daemon.json, a swarm with live-restore, or images in another folder. WARN for "
    "running containers",
    remedy="correct the file on this machine. pai-install adds its settings to it",
)
def docker(case: Case) -> Result | None:
    """A Docker that is in use can be taken over."""
    seen = case.evidence.docker
    if seen.daemon_json:
        return failed("/etc/docker/daemon.json is not valid JSON", value=seen.daemon_json, expected="JSON")
    if not seen.running or case.evidence.installed:
        return (
            passed(seen.version, message="pai-install manages Docker")
            if seen.running
            else passed(message="no Docker runs")
        )
    wanted = str(case.site.settings.docker_data_root)
    running = _running(seen.containers)
    if seen.swarm and case.site.settings.docker_live_restore:
        remedy = (
            "leave the swarm, or set docker_live_restore: false in config.yaml. Containers then stop together with "
            "Docker"
        )
        message = "Docker is in swarm mode, which does not support live-restore"
        return failed(message, value="swarm", expected="no swarm", remedy=remedy)
    if seen.data_root and seen.data_root != wanted:
        # Docker keeps containers in its data root. A new one is harmless only where there are none to leave behind.
        judge = warned if seen.containers == 0 else failed
        return judge(
            f"Docker keeps its data in {seen.data_root}, the site says {wanted}: Docker would lose sight of"
            " its images and containers",
            value=f"{seen.data_root}, {running}",
            expected=wanted,
            remedy=f"set docker_data_root: {seen.data_root} in config.yaml, or move the data",
        )
    if seen.containers == 0:
        return passed(seen.version, message="Docker runs no containers")
    return warned(
        f"Docker {seen.version} is in use: {running}",
        value=running,
        expected="none, or containers that may restart",
        remedy=_what_becomes_of_them(case),
    )


def _running(count: int | None) -> str:
    if count is None:
        return "an unknown number of containers runs"
    return "1 container runs" if count == 1 else f"{count} containers run"


def _what_becomes_of_them(case: Case) -> str:
    if case.site.settings.docker_live_restore:
        return "no action is required: containers keep running while apply restarts Docker (live-restore)"
    return "set docker_live_restore: true in config.yaml. Without it, containers stop when apply restarts Docker"


@machine_check(
    id="docker-cgroups",
    title="Docker's control groups are systemd slices",
    reads="docker: cgroup-parent in daemon.json and in hostconfig.json of containers, cgroups, and identity",
    rule="FAIL for another parent in daemon.json. WARN for containers with another parent. SKIP if Docker "
    "keeps the driver cgroupfs",
    source="moby, daemon_unix.go",
    remedy='write "cgroup-parent": "NAME.slice" to /etc/docker/daemon.json on this machine, or remove the key',
)
def docker_cgroups(case: Case) -> Result | None:
    """With the driver systemd, which Docker gets, it refuses other parents: it would not start, nor containers."""
    seen = case.evidence.docker
    if case.evidence.cgroups.version == 1 and case.evidence.identity.container:
        return skipped("Docker keeps the cgroup driver cgroupfs on this machine")
    expected = "a name that ends in .slice, or none"
    if not seen.daemon_json and not _is_slice(seen.cgroup_parent):
        message = "Docker would not start with its new cgroup driver: cgroup-parent in daemon.json is not a slice"
        return failed(message, value=f"cgroup-parent {seen.cgroup_parent}", expected=expected)
    stuck = [name for name, parent in seen.own_parents.items() if not _is_slice(parent)] if seen.running else []
    if stuck:
        message = "containers keep running but cannot restart: their --cgroup-parent is not a slice"
        remedy = "create them again with --cgroup-parent NAME.slice, or without it"
        return warned(message, value=", ".join(stuck), expected=expected, remedy=remedy)
    return passed(seen.cgroup_parent, message="all control groups are compatible with the driver systemd")


def _is_slice(parent: str) -> bool:
    # A lone ".slice" names no unit, so systemd does not take it.
    return not parent or (parent.endswith(".slice") and parent != ".slice")


@machine_check(
    id="gpu-containers",
    title="No container loses an NVIDIA device during apply",
    reads="devices: control groups and open files of all processes",
    rule="FAIL for containers (not pods) that have /dev/nvidia* open. PASS on a node of this cluster",
    source="NVIDIA/nvidia-docker issue 1730",
    remedy="wait for these jobs, or continue with --force-check gpu-containers. Containers started with "
    "docker run --gpus may lose their GPUs",
)
def gpu_containers(case: Case) -> Result | None:
    """An installation makes systemd reload its units, which may take devices from containers. Pods keep theirs.

    On an installed node a reload is rare, and the plan lists it.
    """
    if case.evidence.member:
        return passed(message="a node of this cluster: plan reports reloads of systemd units")
    count = case.evidence.devices.gpu_containers
    if count is None:
        return unknown("only root can read the open files of containers")
    if not count:
        return passed(message="no container has an NVIDIA device open")
    who = "1 container has" if count == 1 else f"{count} containers have"
    message = f"{who} NVIDIA devices open, which they may lose when systemd reloads its units"
    return failed(message, value=str(count), expected="0")


@machine_check(
    id="containerd",
    title="containerd, if installed, has a valid configuration",
    reads="containerd: config.toml, its tasks, the programs of shims",
    rule="FAIL for an invalid config.toml, and for containers under a shim that containerd 2 lacks. WARN for "
    "containers outside Docker and Kubernetes",
    remedy="correct the file on this machine. pai-install adds its settings to it",
)
def containerd(case: Case) -> Result | None:
    """A containerd that is there can be taken over."""
    seen = case.evidence.containerd
    if seen.config:
        return failed("/etc/containerd/config.toml is not valid TOML", value=seen.config, expected="TOML")
    if seen.old_shims:
        return failed(
            "containers run under a shim of Docker 19.03 or older: Docker would lose them with the new containerd",
            value=str(seen.old_shims),
            expected="0, or shims of runc-v2 (Docker 20.10 and newer)",
            remedy="wait for these containers. Upgrade Docker before you start them again",
        )
    if seen.tasks and not case.evidence.installed:
        shown = ", ".join(f"{count} in {name}" for name, count in sorted(seen.tasks.items()))
        remedy = "no action is required: the containers keep running while apply restarts containerd"
        return warned("containerd runs containers outside Docker and Kubernetes", value=shown, remedy=remedy)
    return passed(message="containerd runs" if seen.running else "containerd does not run")
