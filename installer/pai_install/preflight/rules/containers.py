"""What earlier installations left: another cluster, another Docker, another pod network."""

from __future__ import annotations

from pai_install.preflight.model import Case, Check, Ruling, failed, had, passed, warned

_OWN_CNI = "10-containerd-net.conflist"


def cluster(case: Case) -> Ruling | None:
    """The machine is a node of this cluster or of none."""
    seen = had(case.evidence.kubernetes, "kubernetes")
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
            remedy="if nothing on it is needed: sudo kubeadm reset --force on this machine; or take it out of the site",
        )
    if seen.etcd_entries and case.machine.control_plane and not seen.marker:
        remedy = "move /var/lib/etcd away if nothing in it is needed"
        return failed(
            "/var/lib/etcd is not empty", value=f"{seen.etcd_entries} entries", expected="empty", remedy=remedy
        )
    packaged = "kubelet" in (case.evidence.packages or {})
    if (packaged or seen.kubelet_running) and not seen.marker:
        remedy = "sudo apt-get remove kubelet kubeadm on this machine: ours comes from the component store"
        value = "package kubelet" if packaged else "a kubelet runs"
        return warned("another kubelet is installed; ours takes its place", value=value, expected="none", remedy=remedy)
    return _membership(case)


def _membership(case: Case) -> Ruling:
    seen = had(case.evidence.kubernetes, "kubernetes")
    if not seen.marker:
        return passed("no cluster was here")
    if not seen.member:
        return passed("an interrupted installation of ours; apply continues it", str(seen.marker.get("state", "")))
    reference = _authority(case)
    if reference and seen.authority and seen.authority != reference:
        return failed(
            f"it is a node of another cluster of pai-install than {case.fleet.first}",
            value=f"certificate {seen.authority}",
            expected=f"certificate {reference}",
            remedy="take it out of that cluster first: sudo kubeadm reset --force on this machine",
        )
    return passed("a node of this cluster", seen.authority)


def _authority(case: Case) -> str:
    """The digest of this cluster's certificate; empty when the first control plane has none or gave no evidence."""
    first = case.fleet.evidence.get(case.fleet.first)
    return first.kubernetes.authority if first is not None and first.kubernetes is not None else ""


def pod_network(case: Case) -> Ruling | None:
    """No other pod network's configuration comes first."""
    seen = had(case.evidence.kubernetes, "kubernetes")
    foreign = [name for name in seen.cni if name != _OWN_CNI]
    first = [name for name in foreign if name < _OWN_CNI]
    remedy = "move them out of /etc/cni/net.d"
    if first:
        shown = ", ".join(first)
        message = "the configuration of another pod network would be used in place of ours"
        return failed(message, value=shown, expected=_OWN_CNI, remedy=remedy)
    if foreign:
        message = "configurations of other pod networks lie beside ours; ours is used"
        return warned(message, value=", ".join(foreign), expected=_OWN_CNI, remedy=remedy)
    return passed("no other pod network")


def docker_packages(case: Case) -> Ruling | None:
    """Docker, where it is already there, comes from where the site says."""
    packages = had(case.evidence.packages, "packages")
    if had(case.evidence.docker, "docker").snap:
        remedy = "sudo snap remove docker on this machine (its containers and images go with it)"
        return failed("Docker is installed as a snap, which cannot use our containerd", value="snap",
                      expected=case.site.settings.docker_packages, remedy=remedy)  # fmt: skip
    if "podman-docker" in packages:
        remedy = "sudo apt-get remove podman-docker on this machine"
        return failed("podman takes Docker's place", value="podman-docker", expected="Docker Engine", remedy=remedy)
    wanted = case.site.settings.docker_packages
    there = "docker-ce" if "docker-ce" in packages else "distribution" if "docker.io" in packages else ""
    if not there or there == wanted:
        return passed("Docker is not installed yet" if not there else f"Docker from {there} packages", there)
    return failed(
        f"Docker comes from {there} packages, the site asks for {wanted}",
        value=there,
        expected=wanted,
        remedy=f"write docker_packages: {there} in config.yaml, or remove Docker on this machine first",
    )


def docker(case: Case) -> Ruling | None:
    """A Docker that is in use can be taken over."""
    seen = had(case.evidence.docker, "docker")
    if seen.daemon_json:
        remedy = "correct the file on this machine: apply merges into it and cannot read it"
        return failed("/etc/docker/daemon.json is broken", value=seen.daemon_json, expected="JSON", remedy=remedy)
    if not seen.running or case.evidence.ours:
        return passed("Docker is ours" if seen.running else "no Docker runs", seen.version)
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
        return passed("a Docker without running containers", seen.version)
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


def containerd(case: Case) -> Ruling | None:
    """A containerd that is there can be taken over."""
    seen = had(case.evidence.containerd, "containerd")
    if seen.config:
        remedy = "correct the file on this machine: apply merges into it and cannot read it"
        return failed("/etc/containerd/config.toml is broken", value=seen.config, expected="TOML", remedy=remedy)
    if seen.tasks and not case.evidence.ours:
        shown = ", ".join(f"{count} in {name}" for name, count in sorted(seen.tasks.items()))
        remedy = "nothing: they run on while apply restarts containerd"
        return warned("containers of containerd run outside Docker and Kubernetes", value=shown, remedy=remedy)
    return passed("a containerd runs" if seen.running else "no containerd runs")


CHECKS = (
    Check("kubernetes", "No other Kubernetes cluster on the machine", cluster),
    Check("pod-network", "No other CNI configuration before ours", pod_network),
    Check("docker-packages", "Docker, if any, from the packages that docker_packages says", docker_packages),
    Check("docker", "Docker, if in use, can be taken over without loss", docker),
    Check("containerd", "containerd, if in use, has a configuration that can be read", containerd),
)
