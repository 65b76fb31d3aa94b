"""The pods that copy a storage, made and followed until they end; they go on while no one follows them."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import click

from pai_install.cli._shared.tell import say
from pai_install.cluster.client import ApiError, ClusterClient, NoClusterError, Select
from pai_install.cluster.read import nodes
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Pod, Ref
from pai_install.kube.objects import JsonObject
from pai_install.preflight.model import size_text
from pai_install.storage.copying import (
    MODE,
    OURS,
    RUN,
    CopierSeen,
    Measured,
    Mode,
    Way,
    copy_pod,
    each_machine,
    labels_of,
    number,
    pod_seen,
    progress,
)
from pai_install.storage.objects import stand_in
from pai_install.storage.place import place

KINDS = ("pods", "persistentvolumeclaims", "persistentvolumes", "secrets")
# a pod that does no work for so long, or of which nothing is heard, is left alone
STALL_S = 900.0
_START_S = 240.0
_REMOVAL_S = 60.0
_POLL_S = 2.0
_TELL_S = 30.0
# so often a pod may be lost, by a reboot or an eviction, before the command ends
_LOST = 5
_ROUNDS = 3
_AT_ONCE = 20


class CopyError(PaiError):
    """What the same command again does not repair."""


@dataclass(slots=True)
class Copier:
    """Copies from one place to another. cluster: gives a client for a while. image: one with rsync."""

    cluster: Callable[[], AbstractContextManager[ClusterClient]]
    workers: Sequence[str]
    image: str
    verb: str

    def measured(self, way: Way) -> tuple[tuple[str, Measured], ...]:
        """What there is to copy on each machine that copies. Raises PaiError."""
        with self.cluster() as cluster:
            self._open(cluster, way)
            try:
                found = tuple(self._told(cluster, way, "measure", self._nodes(cluster, way, "measure")))
            finally:
                self._close(cluster, way)
        return tuple((node, Measured.read(told)) for node, told in found)

    def carry(self, way: Way) -> None:
        """Copies, and after the last copy compares every byte. Raises CopyError; else PaiError, and it may go on."""
        with self.cluster() as cluster:
            self._open(cluster, way)
            try:
                self._carried(cluster, way)
            except CopyError:
                self._close(cluster, way)
                raise
            self._close(cluster, way)

    def _carried(self, cluster: ClusterClient, way: Way) -> None:
        for left in reversed(range(_ROUNDS)):
            for node, told in self._told(cluster, way, "copy", self._nodes(cluster, way, "copy")):
                say(f"{node}: {_copied(told)}")
            if not way.last or not (differing := self._differing(cluster, way)):
                return
            if left:
                say("copying what differs")
        node, told = differing[0]
        raise CopyError(
            f"{told['differ']} entries differ on {node} after {_ROUNDS} copies, as {told.get('example', '')}",
            code="copy-differs",
            remedy="nothing of the old generation is removed; look at both places, and at the log of their server",
            exit_code=ExitCode.VERIFICATION_FAILED,
        )

    def _differing(self, cluster: ClusterClient, way: Way) -> list[tuple[str, Mapping[str, str]]]:
        """What was read differently at both places; tells what was not copied, as it is newer."""
        say("comparing every byte of both places")
        found = list(self._told(cluster, way, "verify", self._nodes(cluster, way, "verify")))
        differing = [(node, told) for node, told in found if number(told, "differ") != 0]
        for node, told in found if not differing else ():
            for line in _compared(way, told):
                say(f"{node}: {line}")
        return differing

    def _nodes(self, cluster: ClusterClient, way: Way, mode: Mode) -> tuple[str, ...]:
        """Which machines do it. What one has written another reads, so that no memory of its own answers."""
        storage = way.new.storage
        if each_machine(storage):
            return tuple(self.workers)
        if storage.machine:
            return (storage.machine,)
        known = [node for node in nodes(cluster) if node.name in self.workers and node.ready]
        best = [node.name for node in known if not node.cordoned] or [node.name for node in known]
        if not best:
            raise PaiError(
                "no worker is Ready",
                code="no-ready-worker",
                remedy="pai-install status",
                exit_code=ExitCode.UNREACHABLE,
            )
        return (best[-1 if mode == "verify" else 0],)

    def _told(
        self, cluster: ClusterClient, way: Way, mode: Mode, names: Collection[str]
    ) -> Iterator[tuple[str, Mapping[str, str]]]:
        """What a pod on each machine said; copies one after the other, as all may have one folder."""
        waiting, at_once = list(names), 1 if mode == "copy" else _AT_ONCE
        while waiting:
            some, waiting = waiting[:at_once], waiting[at_once:]
            pods = [(node, self._pod(cluster, way, mode, node)) for node in some]
            for node, pod in pods:
                yield node, self._ended(cluster, way, mode, node, pod)

    def _ended(self, cluster: ClusterClient, way: Way, mode: Mode, node: str, pod: Ref) -> Mapping[str, str]:
        """What the pod said when it ended, or one that took its place."""
        why = ""
        for _attempt in range(_LOST):
            seen = _Following(cluster, pod, mode, self.verb).to_the_end()
            if seen.phase == "Succeeded":
                cluster.delete([pod])
                return seen.told
            if seen.told.get("error"):
                raise CopyError(
                    f"{mode} on {node} failed at {seen.told.get('step', 'its begin')}: {seen.told['error']}",
                    code="copy-failed",
                    remedy=f"what was copied stays in {place(way.new.storage)}; the next copy goes on with it",
                    exit_code=ExitCode.STEP_FAILED,
                )
            why = seen.why or "it was removed"
            say(f"{node}: its pod is lost ({why}); another one goes on")
            pod = self._pod(cluster, way, mode, node)
        raise PaiError(
            f"the pods that copy are lost again and again on {node}: {why}",
            code="copy-pods-lost",
            remedy=f"kubectl describe node {node}; then the same command with --finish goes on",
            exit_code=ExitCode.UNREACHABLE,
        )

    def _pod(self, cluster: ClusterClient, way: Way, mode: Mode, node: str) -> Ref:
        """The one that is at work already, or a new one."""
        mine = f"{OURS},{RUN}={way.word},{MODE}={labels_of(way, mode)[MODE]}"
        (found,) = cluster.list(Select(("pods",), way.old.namespace, mine, f"spec.nodeName={node}"))
        for pod in map(Pod.parse, found):
            if not (pod.finished or pod.terminating):
                say(f"{node}: a pod is at work already")
                return pod.ref
        cluster.delete([Pod.parse(pod).ref for pod in found])
        made = copy_pod(way, mode, node, secrets.token_hex(4), self.image)
        cluster.create([made])
        return Ref("pod", made["metadata"]["name"], way.old.namespace)

    def _open(self, cluster: ClusterClient, way: Way) -> None:
        """Makes what stands for both places; what is left of another copy of the storage goes."""
        (found,) = cluster.list(Select(KINDS, labels=OURS))
        left = [_ref(item) for item in found if _strange(item, way) or "deletionTimestamp" in item["metadata"]]
        cluster.delete([ref for ref in left if ref.kind == "pod"], wait_s=_REMOVAL_S)
        cluster.delete([ref for ref in left if ref.kind != "pod"], wait_s=_REMOVAL_S)
        here = {_ref(item) for item in found}.difference(left)
        wanted = [item for grant in (way.old, way.new) for item in stand_in(grant, labels_of(way))]
        cluster.create([item for item in wanted if _ref(item) not in here])
        claims = [_ref(item) for item in wanted if item["kind"] == "PersistentVolumeClaim"]
        cluster.wait(claims, "jsonpath={.status.phase}=Bound", _REMOVAL_S)

    @staticmethod
    def _close(cluster: ClusterClient, way: Way) -> None:
        mine = f"{OURS},{RUN}={way.word}"
        cluster.delete_selected(Select(("pods",), labels=mine), wait_s=_REMOVAL_S)
        cluster.delete_selected(Select(KINDS[1:], labels=mine), wait_s=_REMOVAL_S)


def _ref(item: JsonObject) -> Ref:
    metadata = item["metadata"]
    return Ref(str(item["kind"]).lower(), str(metadata["name"]), str(metadata.get("namespace", "")))


def _strange(item: JsonObject, way: Way) -> bool:
    """Whether it is of another copy of the same storage."""
    word = str(item["metadata"]["labels"].get(RUN, ""))
    return word != way.word and word.partition(".")[0] == way.new.storage.name


class _Following:
    """One pod until its end. What is not answered is asked again; the pod goes on meanwhile."""

    def __init__(self, cluster: ClusterClient, pod: Ref, mode: Mode, verb: str) -> None:
        self._cluster = cluster
        self._pod = pod
        self._again = f"the pod goes on; the same command follows it again: pai-install {verb} --finish"
        self._shown = _Shown(mode)
        self._work = ""
        self._since = time.monotonic()

    def to_the_end(self) -> CopierSeen:
        """How it ended; with no phase where it is gone. Raises PaiError for one that does nothing."""
        while True:
            found, log = self._asked()
            seen = pod_seen(found, log) if found is not None else None
            if seen is not None and (not found or seen.phase in ("Succeeded", "Failed")):
                self._shown.end()
                return seen
            self._require_work(seen, log)
            if seen is not None and (line := progress(seen.told.get("progress", ""))):
                self._shown.tell(*line)
            time.sleep(_POLL_S)

    def _asked(self) -> tuple[JsonObject | None, str]:
        """The pod and the end of its log; an empty object where it is gone, None where there is no answer."""
        try:
            (found,) = self._cluster.get([self._pod])
            if found is None:
                return {}, ""
            started = pod_seen(found).started
            return found, self._cluster.logs(self._pod, tail=8) if started else ""
        except (NoClusterError, ApiError):
            return None, ""

    def _require_work(self, seen: CopierSeen | None, log: str) -> None:
        now = time.monotonic()
        if log and log != self._work:
            self._work, self._since = log, now
        quiet = now - self._since
        if seen is not None and not seen.started and quiet > _START_S:
            raise PaiError(
                f"{self._pod} does not start: {seen.why or 'a place is not mounted'}",
                code="copy-pod-not-started",
                remedy="pai-install storage test; pai-install apply brings the image to the cluster",
                exit_code=ExitCode.UNREACHABLE,
            )
        if quiet > STALL_S:
            what = "does no work" if seen is not None else "cannot be asked about"
            raise PaiError(
                f"{self._pod} {what} for {quiet:.0f} s",
                code="copy-pod-stalled",
                remedy=self._again,
                exit_code=ExitCode.UNREACHABLE,
            )


class _Shown:
    """How far a copy is: in place on a terminal, else a line now and then."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._last = time.monotonic()
        self._open = False

    def tell(self, size: int, files: int | None) -> None:
        """Shows bytes and files so far."""
        line = f"copied so far: {size_text(size)}" + ("" if files is None else f", {files} files")
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{line}", nl=False, err=True)
            self._open = True
        elif time.monotonic() - self._last > _TELL_S:
            say(line)
            self._last = time.monotonic()

    def end(self) -> None:
        """Leaves the line."""
        if self._open:
            click.echo(err=True)
        self._open = False


def _copied(told: Mapping[str, str]) -> str:
    lost = f"; the new place keeps no {told['lost']}" if told.get("lost") else ""
    return f"copied {number(told, 'files') or 0} files, {size_text(number(told, 'bytes') or 0)}{lost}"


def _compared(way: Way, told: Mapping[str, str]) -> Iterator[str]:
    old, new = place(way.old.storage), place(way.new.storage)
    yield "both places have the same data"
    if newer := number(told, "newer"):
        yield (
            f"{newer} files were changed on both sides and are newer in {new}: those stay, the older ones are in {old}:"
            f" {told.get('newer_example', '')}"
        )
    if kept := number(told, "kept"):
        yield f"{kept} files that the copy replaced are kept in {new}/.pai-install-copy/replaced-g{way.new.generation}"
