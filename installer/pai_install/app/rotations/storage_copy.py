"""The pods that copy a storage, created and followed until they end. They continue while no process follows them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pai_install.app.context import App
from pai_install.app.frontend import CopyProgress
from pai_install.cluster.client import ApiError, NoClusterError, Select
from pai_install.cluster.read import nodes
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Pod, Ref
from pai_install.kube.objects import JsonObject
from pai_install.preflight.model import size_text
from pai_install.storage.copying import (
    MODE,
    OURS,
    RUN,
    CopyPodStatus,
    CopyRoute,
    Measured,
    Mode,
    copy_pod,
    copy_pod_status,
    each_machine,
    labels_of,
    number,
    progress,
)
from pai_install.storage.objects import probe_volume_objects
from pai_install.storage.place import place

KINDS = ("pods", "persistentvolumeclaims", "persistentvolumes", "secrets")
# after so long without progress or answer, the command leaves the pod alone
STALL_S = 900.0
_START_S = 240.0
_REMOVAL_S = 60.0
_POLL_S = 2.0
# pods that may be lost, by a reboot or an eviction, before the command ends
_MOST_LOST = 5
_ROUNDS = 3
_AT_ONCE = 20


class CopyError(PaiError):
    """The copy failed, and a retry cannot repair it."""


@dataclass(frozen=True, slots=True)
class StorageCopier:
    """Copies from one place to another. workers: candidates for the pods. image: one with rsync. command: resumes."""

    app: App
    workers: Sequence[str]
    image: str
    command: str

    def measure(self, route: CopyRoute) -> tuple[tuple[str, Measured], ...]:
        """The amount to copy on each machine that copies. Raises PaiError."""
        self._create_volumes(route)
        try:
            found = tuple(self._reports(route, "measure"))
        finally:
            self._delete_volumes(route)
        return tuple((node, Measured.read(report)) for node, report in found)

    def copy(self, route: CopyRoute) -> None:
        """Copies, and after the last copy compares every byte. Raises CopyError, or PaiError where it may resume."""
        self._create_volumes(route)
        try:
            self._copy(route)
        except CopyError:
            # After any other error the pod goes on, so its volumes stay.
            self._delete_volumes(route)
            raise
        self._delete_volumes(route)

    def _copy(self, route: CopyRoute) -> None:
        for left in reversed(range(_ROUNDS)):
            for node, report in self._reports(route, "copy"):
                self.app.notify(f"{node}: {_copied(report)}")
            if not route.last or not (differing := self._differing(route)):
                return
            if left:
                self.app.notify("copying the differences")
        node, report = differing[0]
        raise CopyError(
            f"cannot copy all data: {report['differ']} entries differ on {node} after {_ROUNDS} copies, "
            f"such as {report.get('example', '')}",
            code="copy-differs",
            remedy="keep the old generation, and read the logs of both servers",
            exit_code=ExitCode.VERIFICATION_FAILED,
        )

    def _differing(self, route: CopyRoute) -> list[tuple[str, Mapping[str, str]]]:
        """Reports of machines on which the places differ. Otherwise says which files were newer and stay."""
        self.app.notify("comparing every byte of both places")
        found = list(self._reports(route, "verify"))
        differing = [(node, report) for node, report in found if number(report, "differ") != 0]
        for node, report in found if not differing else ():
            for line in _compared(route, report):
                self.app.notify(f"{node}: {line}")
        return differing

    def _nodes(self, route: CopyRoute, mode: Mode) -> tuple[str, ...]:
        """The machines of the pods. Another machine verifies than copied, so that no page cache answers."""
        storage = route.new.storage
        if each_machine(storage):
            return tuple(self.workers)
        if storage.machine:
            return (storage.machine,)
        known = [node for node in nodes(self.app.cluster) if node.name in self.workers and node.ready]
        best = [node.name for node in known if not node.cordoned] or [node.name for node in known]
        if not best:
            raise PaiError(
                "cannot copy the data: no worker is ready",
                code="no-ready-worker",
                remedy="find the cause with pai-install status",
                exit_code=ExitCode.UNREACHABLE,
            )
        return (best[-1 if mode == "verify" else 0],)

    def _reports(self, route: CopyRoute, mode: Mode) -> Iterator[tuple[str, Mapping[str, str]]]:
        """The report of a pod on each machine. Machines copy one after the other, as all may share one folder."""
        waiting, at_once = list(self._nodes(route, mode)), 1 if mode == "copy" else _AT_ONCE
        while waiting:
            some, waiting = waiting[:at_once], waiting[at_once:]
            pods = [(node, self._pod(route, mode, node)) for node in some]
            for node, pod in pods:
                yield node, self._wait(route, mode, node, pod)

    def _wait(self, route: CopyRoute, mode: Mode, node: str, pod: Ref) -> Mapping[str, str]:
        """Returns the report of the pod or its replacement."""
        why = ""
        for _attempt in range(_MOST_LOST):
            status = _PodFollower(self.app, pod, self.command).wait()
            if status.phase == "Succeeded":
                self.app.cluster.delete([pod])
                return status.report
            if status.report.get("error"):
                raise CopyError(
                    f"cannot {mode} on {node}: {status.report.get('step', 'start')}: {status.report['error']}",
                    code="copy-failed",
                    remedy=f"repeat the command. Copied files stay in {place(route.new.storage)}",
                    exit_code=ExitCode.STEP_FAILED,
                )
            why = status.why or "deleted"
            self.app.notify(f"{node}: the pod is lost ({why}); another one continues")
            pod = self._pod(route, mode, node)
        raise PaiError(
            f"cannot copy on {node}: {_MOST_LOST} pods were lost: {why}",
            code="copy-pods-lost",
            remedy=f"read kubectl describe node {node}, then repeat the command with --finish",
            exit_code=ExitCode.UNREACHABLE,
        )

    def _pod(self, route: CopyRoute, mode: Mode, node: str) -> Ref:
        """A running pod of an earlier process, or a new one."""
        selector = f"{OURS},{RUN}={route.run_label},{MODE}={labels_of(route, mode)[MODE]}"
        cluster = self.app.cluster
        (found,) = cluster.list(Select(("pods",), route.old.namespace, selector, f"spec.nodeName={node}"))
        for pod in map(Pod.parse, found):
            if not (pod.finished or pod.terminating):
                self.app.notify(f"{node}: a pod is running already")
                return pod.ref
        cluster.delete([Pod.parse(pod).ref for pod in found])
        made = copy_pod(route, mode, node, secrets.token_hex(4), self.image)
        cluster.create([made])
        return Ref("pod", made["metadata"]["name"], route.old.namespace)

    def _create_volumes(self, route: CopyRoute) -> None:
        """Creates volumes for both places. Deletes those of another copy of the storage."""
        cluster = self.app.cluster
        (found,) = cluster.list(Select(KINDS, labels=OURS))
        left = [_ref(item) for item in found if _strange(item, route) or "deletionTimestamp" in item["metadata"]]
        # Kubernetes keeps a claim while a pod uses it, so the pods go first.
        cluster.delete([ref for ref in left if ref.kind == "pod"], wait_s=_REMOVAL_S)
        cluster.delete([ref for ref in left if ref.kind != "pod"], wait_s=_REMOVAL_S)
        here = {_ref(item) for item in found}.difference(left)
        wanted = [item for grant in (route.old, route.new) for item in probe_volume_objects(grant, labels_of(route))]
        cluster.create([item for item in wanted if _ref(item) not in here])
        claims = [_ref(item) for item in wanted if item["kind"] == "PersistentVolumeClaim"]
        cluster.wait(claims, "jsonpath={.status.phase}=Bound", _REMOVAL_S)

    def _delete_volumes(self, route: CopyRoute) -> None:
        cluster = self.app.cluster
        selector = f"{OURS},{RUN}={route.run_label}"
        cluster.delete_selected(Select(("pods",), labels=selector), wait_s=_REMOVAL_S)
        cluster.delete_selected(Select(KINDS[1:], labels=selector), wait_s=_REMOVAL_S)


def _ref(item: JsonObject) -> Ref:
    metadata = item["metadata"]
    return Ref(str(item["kind"]).lower(), str(metadata["name"]), str(metadata.get("namespace", "")))


def _strange(item: JsonObject, route: CopyRoute) -> bool:
    """Whether it is of another copy of the same storage."""
    word = str(item["metadata"]["labels"].get(RUN, ""))
    return word != route.run_label and word.partition(".")[0] == route.new.storage.name


class _PodFollower:
    """One pod until its end. It asks again while the cluster does not answer. The pod continues meanwhile."""

    def __init__(self, app: App, pod: Ref, command: str) -> None:
        self._app = app
        self._pod = pod
        self._remedy = f"the pod continues. To follow it: pai-install {command} --finish"
        self._log = ""
        self._since = time.monotonic()

    def wait(self) -> CopyPodStatus:
        """Its last status, without a phase where it is deleted. Raises PaiError for a pod without progress."""
        while True:
            found, log = self._read()
            status = copy_pod_status(found, log) if found is not None else None
            if status is not None and (not found or status.phase in ("Succeeded", "Failed")):
                return status
            self._require_progress(status, log)
            if status is not None and (amount := progress(status.report.get("progress", ""))):
                self._app.frontend.notify(CopyProgress(*amount))
            time.sleep(_POLL_S)

    def _read(self) -> tuple[JsonObject | None, str]:
        """The pod and the end of its log. An empty object where it is deleted, None without an answer."""
        try:
            (found,) = self._app.cluster.get([self._pod])
            if found is None:
                return {}, ""
            started = copy_pod_status(found).started
            return found, self._app.cluster.logs(self._pod, tail=8) if started else ""
        except (NoClusterError, ApiError):
            return None, ""

    def _require_progress(self, status: CopyPodStatus | None, log: str) -> None:
        now = time.monotonic()
        if log and log != self._log:
            self._log, self._since = log, now
        quiet = now - self._since
        if status is not None and not status.started and quiet > _START_S:
            raise PaiError(
                f"cannot start {self._pod}: {status.why or 'a volume is not mounted'}",
                code="copy-pod-not-started",
                remedy="run pai-install storage test. If the image is missing, run pai-install apply",
                exit_code=ExitCode.UNREACHABLE,
            )
        if quiet > STALL_S:
            cause = "no progress" if status is not None else "no answer from the cluster"
            raise PaiError(
                f"cannot follow {self._pod}: {cause} for {quiet:.0f} s",
                code="copy-pod-stalled",
                remedy=self._remedy,
                exit_code=ExitCode.UNREACHABLE,
            )


def _copied(report: Mapping[str, str]) -> str:
    lost = f"; the new place keeps no {report['lost']}" if report.get("lost") else ""
    return f"copied {number(report, 'files') or 0} files, {size_text(number(report, 'bytes') or 0)}{lost}"


def _compared(route: CopyRoute, report: Mapping[str, str]) -> Iterator[str]:
    old, new = place(route.old.storage), place(route.new.storage)
    yield "both places have the same data"
    if newer := number(report, "newer"):
        yield (
            f"{newer} files were changed on both sides and are newer in {new}: those stay, the older ones are in {old}:"
            f" {report.get('newer_example', '')}"
        )
    if kept := number(report, "kept"):
        yield f"{kept} replaced files are kept in {new}/.pai-install-copy/replaced-g{route.new.generation}"
