"""Runs it: a sample every quarter of a minute, and what a minute was is told as a condition of the pod."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from gpu_use import holders, measure, pods, steps
from gpu_use.cluster import Cluster, ClusterError
from gpu_use.holders import KubeletError, Pod
from gpu_use.measure import SAMPLES, Minute
from gpu_use.pods import Json, meta
from gpu_use.smi import Smi
from gpu_use.steps import CEILING, MINUTE_S, Steps

SETTINGS = Path("/etc/pai-install/gpu-use.json")
# seconds until a pod that stays busy is told of again; any other is told of every minute
_TELL_BUSY_S = 600
# seconds that the clock may have gone otherwise than time did, within a minute
_SET_S = 15


@dataclass
class Known:
    """What is known of one pod. told: when it was told, and the level then."""

    gpu: Steps
    cpu: Steps
    used_s: Optional[float] = None
    told: tuple[int, int] = (0, 0)


@dataclass
class Meter:
    """The program. complain: takes a line for the journal."""

    cluster: Cluster
    smi: Smi
    complain: Callable[[str], None]
    socket: Path = holders.SOCKET
    groups: Path = pods.GROUPS
    known: dict[str, Known] = field(default_factory=dict)
    there: list[Json] = field(default_factory=list)
    minute: Minute = field(default_factory=dict)

    def sample(self) -> None:
        """Asks the driver and the kubelet."""
        try:
            held = {pod: measure.held(devices) for pod, devices in holders.holders(self.socket).items()}
        except KubeletError as error:
            self.complain(str(error))
            return
        given = {_name(pod): pods.by_hived(pod) for pod in self.there}
        given.update({pod: devices for pod, devices in held.items() if devices})
        if whose := {pod: devices for pod, devices in given.items() if devices}:
            measure.sample(self.minute, self.smi.ask(), whose)

    def end_minute(self, end: int, *, whole: bool) -> None:
        """Tells what the minute was. whole: whether it was one by the clock, too."""
        minute, self.minute = self.minute, {}
        try:
            self.there = [pod for pod in self.cluster.pods() if not pods.is_over(pod)]
        except ClusterError as error:
            self.complain(str(error))
        uids = {meta(pod, "uid") for pod in self.there}
        self.known = {uid: known for uid, known in self.known.items() if uid in uids}
        for pod in self.there:
            if (rows := minute.get(_name(pod))) is not None:
                self._took(pod, rows, end, whole=whole)

    def _took(self, pod: Json, rows: dict[str, list[Optional[float]]], end: int, *, whole: bool) -> None:
        known, uid = self._recalled(pod, end), meta(pod, "uid")
        used_s = pods.processor_s(uid, self.groups)
        cpu = None if used_s is None or known.used_s is None else 100 * (used_s - known.used_s) / MINUTE_S
        known.used_s = used_s
        known.gpu = known.gpu.then(end, measure.level(rows) if whole else None)
        known.cpu = known.cpu.then(end, cpu if whole else None)
        told_at, told = known.told
        quiet = known.gpu.now < CEILING
        if quiet or told < CEILING or end - told_at >= _TELL_BUSY_S or end < told_at:
            self._tell(pod, known, len(rows))

    def _recalled(self, pod: Json, end: int) -> Known:
        uid = meta(pod, "uid")
        if uid not in self.known:
            before, fresh = pods.recalled(pod), steps.begin(end - MINUTE_S)
            self.known[uid] = Known(before.get("gpu", fresh), before.get("cpu", fresh))
        return self.known[uid]

    def _tell(self, pod: Json, known: Known, gpus: int) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(known.gpu.at))
        try:
            told = pods.condition(known.gpu, known.cpu, gpus, moment)
            self.cluster.tell(meta(pod, "namespace"), meta(pod, "name"), meta(pod, "uid"), told)
            known.told = known.gpu.at, known.gpu.now
        except ClusterError as error:
            self.complain(str(error))


def _name(pod: Json) -> Pod:
    return meta(pod, "namespace"), meta(pod, "name")


@dataclass
class Journal:
    """Says a thing once, until another one is to be said."""

    said: str = ""

    def complain(self, line: str) -> None:
        """A warning in the journal."""
        if line != self.said:
            self.said = line
            print(f"<4>{line}", file=sys.stderr, flush=True)


def run(meter: Meter, minutes: Optional[int] = None) -> None:
    """Without end, or for so many minutes."""
    while minutes is None or minutes > 0:
        started, clock = time.monotonic(), time.time()
        for number in range(1, SAMPLES + 1):
            meter.sample()
            time.sleep(max(started + number * MINUTE_S / SAMPLES - time.monotonic(), 0))
        now, lasted = time.time(), time.monotonic() - started
        meter.end_minute(int(now), whole=abs(now - clock - lasted) < _SET_S)
        minutes = None if minutes is None else minutes - 1


def main() -> None:
    """With the settings that the role writes."""
    given = json.loads(SETTINGS.read_text())
    run(Meter(Cluster(given["node"]), Smi(), Journal().complain))


if __name__ == "__main__":
    main()
