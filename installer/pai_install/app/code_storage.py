"""Code above 1 MiB: its storage, and the way there by a pod of the group."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pai_install.app.cluster_context import ClusterContext
from pai_install.app.frontend import CopyProgress
from pai_install.cluster.client import ApiError, ClusterClient, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.code import StoredCode, stored_code
from pai_install.jobs.code_archive import PackedCode
from pai_install.jobs.code_pod import ABSENT, NOT_EQUAL, NOT_WRITTEN, OWNER, PRESENT, owned, receive_words, upload_pod
from pai_install.jobs.place import JobPlace
from pai_install.jobs.state import JobState
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, conditions
from pai_install.profile.model import ClusterProfile
from pai_install.storage.copying import copy_pod_status
from pai_install.system.plain import plain_text
from pai_install.system.proc import Completed

if TYPE_CHECKING:  # the console has no AppContext
    from pai_install.app.base import AppContext

IMAGE = "busybox"
ENDED = ("Succeeded", "Failed")
_START_S, _POLL_S, _END_S = 300.0, 1.0, 30.0


def storage_for_code(profile: ClusterProfile, group: str) -> str:
    """The storage of a group for code: the setting, else the only suitable one. Raises PaiError."""
    writable = {one.name: one for one in profile.storages if not one.read_only}
    granted = [one.storage for one in profile.grants if one.group == group and one.current and one.claimed]
    chosen = profile.code.storage
    if chosen and chosen not in granted:
        cause = f"group {group} is not granted {chosen}"
        remedy = f"run pai-install storage grant {chosen} --group {group}"
    elif chosen:
        return chosen
    else:
        # each machine has a folder of its own there
        found = [name for name in granted if name in writable and writable[name].type != "hostPath"]
        if len(found) == 1:
            return found[0]
        cause = f"group {group} has {'no' if not found else 'more than one'} storage for it"
        remedy = "set jobs: {code: {storage: NAME}} in services-configuration.yaml to a storage of the group"
    raise PaiError(
        f"cannot store code above 1 MiB: {cause}",
        code="code-storage-missing",
        remedy=remedy,
        exit_code=ExitCode.USAGE,
    )


class CodeTransfer(Protocol):
    """The way of an archive into its pod. image: of the pod. port: of the pod, or 0 for a way without one."""

    @property
    def image(self) -> str: ...

    @property
    def port(self) -> int: ...

    def send(self, pod: JsonObject, packed: PackedCode) -> Completed:
        """Sends an archive to a pod that runs. Returns the result of its program."""
        ...


@dataclass(frozen=True)
class CodeExec:
    """The way of this host: `kubectl exec` of the administrator."""

    app: AppContext
    port: int = 0

    @property
    def image(self) -> str:
        """As the component store serves it."""
        return self.app.environment.image(self.app.site, self.app.state, IMAGE, self.app.notify)

    def send(self, pod: JsonObject, packed: PackedCode) -> Completed:
        """Runs the program that reads it."""

        def report_size(size: int) -> None:
            self.app.frontend.notify(CopyProgress(size, None, packed.size))

        packed.file.seek(0)
        app = self.app
        return app.environment.feed_pod(app.site, app.state, receive_words(pod), packed.file, report_size)


def store_code(
    context: ClusterContext,
    packed: PackedCode,
    code: StoredCode,
    place: JobPlace,
    transfer: CodeTransfer,
    jobs: Iterable[JobState],
) -> None:
    """Puts an archive on the storage of its job, unless it is there. Raises PaiError. Ctrl-C leaves no part of it.

    jobs: those of the group. Each upload removes old archives that none of them uses.
    """
    used = {found.digest for job in jobs if (found := stored_code(job.code, job.code_place)) is not None}
    keep_days = context.profile.code.keep_days
    pod = upload_pod(code, place, secrets.token_hex(4), transfer.image, keep_days, used, transfer.port)
    # The pod has the power of a member: the policies and quotas of the owner must permit it.
    submitter = context.submitter(place.owner.user)
    context.cluster.dry_run([owned(pod)], submitter)
    # An owner makes no pod without their name. The pod of an administrator is in no list of jobs.
    with _running(context, pod if submitter is not None else owned(pod), code) as present:
        if present:
            context.notify(f"the storage {code.storage} has this code already")
            return
        _require_sent(transfer.send(pod, packed), code)
    context.notify(f"the code is on the storage {code.storage}")


@contextmanager
def _running(context: ClusterContext, pod: JsonObject, code: StoredCode) -> Iterator[bool]:
    """Yields whether the storage has the archive, while the pod runs. Deletes it, and ended ones of lost uploads."""
    metadata, cluster = pod["metadata"], context.cluster
    ref = Ref("pod", metadata["name"], metadata["namespace"])
    (others,) = cluster.list(Select(("pods",), ref.namespace, f"{OWNER}={metadata['labels'][OWNER]}"))
    ended = [one["metadata"]["name"] for one in others if copy_pod_status(one).phase in ENDED]
    cluster.delete([Ref("pod", name, ref.namespace) for name in ended])
    try:
        cluster.create([pod])
        yield _is_present(cluster, ref, code)
    finally:
        cluster.delete([ref], wait_s=_END_S)


def _is_present(cluster: ClusterClient, pod: Ref, code: StoredCode) -> bool:
    """Waits for the answer of the pod. Raises PaiError for a pod that does not start."""
    deadline = time.monotonic() + _START_S
    why = ""
    while time.monotonic() < deadline:
        (found,) = cluster.get([pod])
        status = copy_pod_status(found or {})
        why = status.why or _without_node(found or {}) or "a volume is not mounted"
        if status.started:
            words = _log(cluster, pod).split()
            if PRESENT in words or ABSENT in words:
                return PRESENT in words
        if found is None or status.phase in ENDED:
            break
        time.sleep(_POLL_S)
    raise PaiError(
        f"cannot store the code on {code.storage}: the pod {pod.name} does not start: {why}",
        code="code-not-stored",
        remedy=f"run pai-install storage test {code.storage}",
        exit_code=ExitCode.STEP_FAILED,
    )


def _without_node(pod: JsonObject) -> str:
    """Why the pod has no node."""
    states = conditions(child(pod, "status").get("conditions"))
    return next((it.message for it in states if it.type == "PodScheduled"), "")


def _log(cluster: ClusterClient, pod: Ref) -> str:
    """The log of the pod. Nothing while the kubelet has none."""
    try:
        return cluster.logs(pod, tail=4)
    except ApiError:
        return ""


def _require_sent(done: Completed, code: StoredCode) -> None:
    """Raises PaiError for an archive that did not arrive."""
    if done.ok:
        return
    causes = {NOT_WRITTEN: "it cannot be written", NOT_EQUAL: "the connection ended early"}
    raise PaiError(
        f"cannot store the code on {code.storage}: {causes.get(done.returncode, 'the connection failed')}",
        code="code-not-stored",
        remedy="repeat the command. If it fails again, check the free space of the storage",
        details=plain_text(done.stderr.strip()[-2000:]),
        exit_code=ExitCode.STEP_FAILED,
    )
