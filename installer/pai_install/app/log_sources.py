"""Sources of logs: journals of units, static pods of the control plane, and pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Literal

from pai_install.cluster.client import ClusterClient, LogWindow, NoClusterError
from pai_install.cluster.machines import Machines
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.site.model import Machine, Site

Where = Literal["all", "control plane", "GPU"]

# as kubectl and crictl write "all lines"
_UNLIMITED = -1
# a container of the runtime, also while the API server is down
_CRICTL = (
    'found=$(/usr/local/bin/crictl ps --all --latest --quiet --name "^$1$") && [ -n "$found" ] || '
    '{ echo "no container $1" >&2; exit 1; }; shift; exec /usr/local/bin/crictl logs "$@" "$found" 2>&1'
)


@dataclass(frozen=True, slots=True)
class LogService:
    """A service of the site. where: its machines. container: the name of its static pod, "" for units of systemd."""

    where: Where
    units: tuple[str, ...] = ()
    container: str = ""


SERVICES: Mapping[str, LogService] = {
    "kubelet": LogService("all", ("kubelet",)),
    "containerd": LogService("all", ("containerd",)),
    "docker": LogService("all", ("docker",)),
    "api-proxy": LogService("all", ("pai-api-proxy",)),
    "pod-forwarding": LogService("all", ("pai-pod-forwarding",)),
    "group-network": LogService("all", ("pai-group-network", "pai-group-addresses")),
    "time": LogService("all", ("chrony",)),
    "node-exporter": LogService("all", ("pai-node-exporter", "pai-node-metrics")),
    "storage-server": LogService("all", ("nfs-server", "nfs-ganesha")),
    "registry": LogService("control plane", ("pai-component-store", "pai-docker-cache-gc")),
    "job-recorder": LogService("control plane", ("pai-job-recorder",)),
    "etcd-backup": LogService("control plane", ("pai-etcd-backup",)),
    "gpu-meter": LogService("GPU", ("pai-gpu-use",)),
    "nvidia": LogService("GPU", ("pai-nvidia", "nvidia-persistenced", "nvidia-fabricmanager")),
    "etcd": LogService("control plane", container="etcd"),
    "kube-apiserver": LogService("control plane", container="kube-apiserver"),
    "kube-controller-manager": LogService("control plane", container="kube-controller-manager"),
    "kube-scheduler": LogService("control plane", container="kube-scheduler"),
}
# of a machine as a whole
UNITS = (*dict.fromkeys(unit for service in SERVICES.values() for unit in service.units), "pai-*")


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a log to read. lines: the last ones, 0 for all. since: seconds since 1970, None for all."""

    lines: int = 0
    since: float | None = None
    follow: bool = False

    @property
    def tail(self) -> int:
        """The number of lines as kubectl and crictl write it."""
        return self.lines or _UNLIMITED

    @property
    def moment(self) -> str:
        """`since` in RFC 3339, "" for all."""
        return "" if self.since is None else f"{datetime.fromtimestamp(self.since, UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log. lines: reads it. Closing the iterator ends the reading."""

    name: str
    lines: Callable[[], Iterator[str]]


def machines_of(site: Site, where: Where) -> tuple[Machine, ...]:
    """The present machines with a service."""
    if where == "control plane":
        return tuple(site.control_planes)
    present = site.present_machines
    return tuple(it for it in present if where == "all" or (it.worker and site.sku_of(it).has_nvidia))


def service_source(machines: Machines, host: str, service: LogService, window: Window) -> LogSource:
    """The log of a service on one machine."""
    program = _container_words(service.container, window) if service.container else journal_words(service.units, window)
    return LogSource(host, partial(machines.lines, host, program))


def journal_words(units: tuple[str, ...], window: Window) -> tuple[str, ...]:
    """The program that prints the journal of units."""
    named = [word for unit in units for word in ("--unit", unit)]
    since = [] if window.since is None else ["--since", f"@{window.since:.0f}"]
    ending = ["--follow"] if window.follow else []
    last = ["--lines", str(window.lines) if window.lines else "all"]
    return ("journalctl", "--no-pager", "--quiet", "--output", "short-iso", *named, *last, *since, *ending)


def _container_words(name: str, window: Window) -> tuple[str, ...]:
    since = ["--since", window.moment] if window.since is not None else []
    ending = ["--follow"] if window.follow else []
    return ("sh", "-c", _CRICTL, "sh", name, "--tail", str(window.tail), *since, *ending)


def pod_source(client: ClusterClient, pod: Ref, window: Window, name: str, container: str = "") -> LogSource:
    """The log of a container, by default the pod's main one."""
    part = LogWindow(window.tail, window.moment, window.follow)

    def lines() -> Iterator[str]:
        try:
            yield from client.log_lines(pod, part, container=container)
        except NoClusterError as error:  # the API server answered before: it does not reach the kubelet of the pod
            raise PaiError(
                f"cannot read the log of {pod}: its node is unreachable",
                code="pod-log-unreachable",
                details=error.details,
                remedy="find the cause with pai-install status",
                exit_code=ExitCode.UNREACHABLE,
            ) from error

    return LogSource(name, lines)
