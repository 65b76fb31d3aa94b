"""Entry point: samples GPUs every 15 seconds, and reports each minute in a condition of the pod."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pai_install.agents.common.api import STRATEGIC, ApiError, Client, object_path, with_kubeconfig
from pai_install.agents.common.log import Log, guarded
from pai_install.agents.common.utilization import (
    CEILING,
    MINUTE_S,
    Series,
    Work,
    condition,
    unknown_until,
    utilization_of,
)
from pai_install.agents.common.values import Json, meta, parse_object, rows
from pai_install.agents.gpu_use import gpu_processes, measure, metrics, pods, xids
from pai_install.agents.gpu_use.gpu_processes import KubeletError, Pod
from pai_install.agents.gpu_use.measure import SAMPLES, Minute
from pai_install.agents.gpu_use.metrics import Reading
from pai_install.agents.gpu_use.smi import Gpu, Smi

SETTINGS = Path("/etc/pai-install/gpu-use.json")
KUBECONFIG = Path("/etc/kubernetes/kubelet.conf")
IDENTITY = Path("/var/lib/kubelet/pki/kubelet-client-current.pem")
# label of a job's owner: the pods that have it are pods of jobs
_OWNER = "pai-install/user"
# seconds between two reports of a busy pod; other pods are reported every minute
_BUSY_REPORT_S = 600
# seconds that the clock may be set by within a minute
_CLOCK_S = 15


@dataclass
class Usage:
    """The utilization of one pod. work: in all minutes. reported: time and level of the last report."""

    gpu: Series
    cpu: Series
    work: Work = field(default_factory=Work)
    used_s: float | None = None
    reported: tuple[int, int] = (0, 0)


@dataclass
class Meter:
    """The program. node: name in the cluster. warn: takes a line for the log.

    metrics: text file of the node exporter, None without monitoring. expected: GPUs of the layout. remapped: rows of
    each GPU, read once in a minute.
    """

    client: Client
    node: str
    smi: Smi
    warn: Callable[[str], None]
    socket: Path = gpu_processes.SOCKET
    groups: Path = pods.GROUPS
    usage: dict[str, Usage] = field(default_factory=dict)
    running: Sequence[Json] = ()
    minute: Minute = field(default_factory=dict)
    metrics: Path | None = None
    expected: int = 0
    remapped: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def sample(self) -> None:
        """Queries the driver and the kubelet."""
        assigned = self._assigned()
        # Without holders and metrics, nvidia-smi would only wake the driver.
        if not assigned and self.metrics is None:
            return
        gpus = self.smi.query()
        if assigned:
            measure.sample(self.minute, gpus, assigned)
        if self.metrics is not None:
            with guarded(self.warn, str(self.metrics)):
                self._write_metrics(self.metrics, gpus, assigned)

    def _assigned(self) -> dict[Pod, Sequence[str]]:
        """Returns the devices of each pod that has some, {} if the kubelet does not respond."""
        try:
            held = {pod: measure.held(devices) for pod, devices in gpu_processes.devices_of_pods(self.socket).items()}
        except KubeletError as error:
            self.warn(str(error))
            return {}
        assigned: dict[Pod, Sequence[str]] = {_name(pod): pods.hived_gpus(pod) for pod in self.running}
        # The kubelet does not know devices that HiveD assigned. Where it knows devices of a pod, they count.
        assigned.update({pod: devices for pod, devices in held.items() if devices})
        return {pod: devices for pod, devices in assigned.items() if devices}

    def _write_metrics(self, path: Path, gpus: Mapping[str, Gpu], assigned: Mapping[Pod, Iterable[str]]) -> None:
        holders = measure.holders(gpus, assigned)
        reading = Reading(time.time(), gpus, holders, self.remapped, xids.read(), self.smi.hanging_s, self.expected)
        metrics.write(path, metrics.exposition(reading))

    def end_minute(self, end: int, *, whole: bool) -> None:
        """Reports the minute. whole: the clock was not set in it."""
        minute, self.minute = self.minute, {}
        if self.metrics is not None:
            self.remapped = self.smi.remapped()
        try:
            self.running = [pod for pod in self._list() if not pods.is_over(pod)]
        except ApiError as error:
            self.warn(str(error))
        uids = {meta(pod, "uid") for pod in self.running}
        self.usage = {uid: usage for uid, usage in self.usage.items() if uid in uids}
        for pod in self.running:
            if (samples := minute.get(_name(pod))) is not None:
                with guarded(self.warn, f"pod {'/'.join(_name(pod))}"):
                    self._add(pod, samples, end, whole=whole)

    def _list(self) -> Sequence[Json]:
        selectors = {"fieldSelector": f"spec.nodeName={self.node}", "labelSelector": _OWNER}
        return [pod for page in self.client.pages("/api/v1/pods", selectors) for pod in rows(page.get("items"))]

    def _add(self, pod: Json, samples: dict[str, list[float | None]], end: int, *, whole: bool) -> None:
        usage = self.usage.setdefault(meta(pod, "uid"), _reported(pod, end))
        used_s = pods.processor_s(meta(pod, "uid"), self.groups)
        cpu = None if used_s is None or usage.used_s is None else 100 * (used_s - usage.used_s) / MINUTE_S
        usage.used_s = used_s
        usage.gpu = usage.gpu.then(end, measure.level(samples) if whole else None)
        usage.cpu = usage.cpu.then(end, cpu if whole else None)
        usage.work = usage.work.plus(measure.work(samples) if whole else Work())
        at, level = usage.reported
        # Each report is a write to etcd. Above the ceiling, no limit could tell two reports apart.
        if usage.gpu.now < CEILING or level < CEILING or end - at >= _BUSY_REPORT_S or end < at:
            self._patch_condition(pod, usage, len(samples))

    def _patch_condition(self, pod: Json, usage: Usage, gpus: int) -> None:
        timestamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(usage.gpu.at))
        status = {"conditions": [condition(usage.gpu, usage.cpu, gpus, usage.work, timestamp)]}
        # by its UID: the next pod may have the same name
        body = {"metadata": {"uid": meta(pod, "uid")}, "status": status}
        path = object_path("v1", "pods", *_name(pod))
        try:
            self.client.json("PATCH", f"{path}/status", body, STRATEGIC)
            usage.reported = usage.gpu.at, usage.gpu.now
        except ApiError as error:
            self.warn(str(error))


def _name(pod: Json) -> Pod:
    return meta(pod, "namespace"), meta(pod, "name")


def _reported(pod: Json, end: int) -> Usage:
    """The utilization that was reported before this program started."""
    before = utilization_of(pod)
    if before is None:
        return Usage(unknown_until(end - MINUTE_S), unknown_until(end - MINUTE_S))
    return Usage(Series(before.at, before.gpu), Series(before.at, before.cpu), before.work or Work())


def run(meter: Meter, minutes: int | None = None) -> None:
    """Runs for so many minutes, or without end."""
    while minutes is None or minutes > 0:
        started, clock = time.monotonic(), time.time()
        for number in range(1, SAMPLES + 1):
            meter.sample()
            # Times of the samples are fixed from the start, so that slow answers do not add up.
            time.sleep(max(started + number * MINUTE_S / SAMPLES - time.monotonic(), 0))
        now, lasted = time.time(), time.monotonic() - started
        # A clock that was set makes the minute look longer or shorter than the monotonic one.
        meter.end_minute(int(now), whole=abs(now - clock - lasted) < _CLOCK_S)
        minutes = None if minutes is None else minutes - 1


def main() -> None:
    """Runs with the settings that the role writes."""
    settings = parse_object(SETTINGS.read_text())
    path = Path(settings["metrics"]) if settings.get("metrics") else None
    client, smi = Client(with_kubeconfig(KUBECONFIG, IDENTITY)), Smi(full=path is not None)
    expected = int(settings.get("expected", 0))
    run(Meter(client, settings["node"], smi, Log().warn, metrics=path, expected=expected))


if __name__ == "__main__":
    main()
