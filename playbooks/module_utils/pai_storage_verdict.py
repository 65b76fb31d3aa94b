"""Findings of a storage test, from pods, events, nodes, and claims of the API. Pure."""

from __future__ import annotations

import re
from typing import Any

from ansible.module_utils.pai_cluster_state import child, node_facts, rows, text
from ansible.module_utils.pai_finding import finding
from ansible.module_utils.pai_storage_pod import Grant, Trial, key_values

MOUNT_CHECK = "storage-mount"
USE_CHECK = "storage-use"
CLAIM_CHECK = "storage-claim"
# reasons of events that say why a volume does not come
MOUNT_REASONS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
# a pod whose image is refused for so long gets none
FINAL_S = 30
ENDED = ("Succeeded", "Failed")
NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
NO_ROOM = ("OutOf", "Evicted", "NodeAffinity", "NodeShutdown", "Terminated", "UnexpectedAdmissionError")
# the kubelet's summary of a mount that goes on; it does not say what went wrong
WAITS = re.compile(r"timed out waiting for the condition|context deadline exceeded|operation .*already exists", re.I)

Pod = dict[str, Any]
Finding = dict[str, str]

# what mount programs, the kubelet and drivers say -> what it means, what to do; the first that fits
MEANINGS = (
    (
        r"access denied by server|NT_STATUS_ACCESS_DENIED",
        "the server refuses this worker",
        "export it to this worker's address on the server",
    ),
    (
        r"LOGON_FAILURE|mount error\(13\)|AuthenticationFailed|AuthorizationFailure",
        "the server refuses the login",
        "correct the account or key of the storage in services-configuration.yaml",
    ),
    (
        r"hostPath type check failed|path .* does not exist|is not a directory",
        "the worker does not have the folder",
        "make the folder on this worker, or correct path of the storage",
    ),
    (
        r"No such file or directory|NT_STATUS_BAD_NETWORK_NAME|mount error\(2\)|ShareNotFound|ContainerNotFound",
        "the server has no such folder or share",
        "correct path or share of the storage, or make it on the server",
    ),
    (
        r"No route to host|Connection (refused|timed out|reset)|unreachable|mount error\(11[0135]\)",
        "the server does not answer",
        "look at the server, and at the network between it and this worker",
    ),
    (
        r"resolve|Name or service not known|no such host",
        "the worker does not find the server's name",
        "look at the DNS of this worker, or write the server's address",
    ),
    (
        r"bad option|unknown filesystem type|need a /sbin/mount|executable file not found|No such device",
        "the worker has no client for it",
        "install the client on this worker: nfs-common for nfs, cifs-utils for smb",
    ),
    (
        r"not found in the list of registered CSI drivers",
        "the driver does not run on this worker",
        "kubectl get csinodes; kubectl get pods --all-namespaces --field-selector spec.nodeName=NODE",
    ),
    (
        r"secrets? \S+ not found|persistentvolumeclaims? \S+ not found",
        "an object of the storage is missing",
        "pai-install apply",
    ),
    (
        r"Operation not permitted|Permission denied",
        "the server or the worker does not permit it",
        "look at owner and mode of the folder, and whether the server turns root into no one (root_squash)",
    ),
    (
        r"Read-only file system",
        "it is mounted read-only",
        "export it for writing on the server, or set read-only: true",
    ),
    (
        r"No space left on device|Disk quota exceeded|File too large",
        "it has no room left",
        "make room on the storage, or raise its quota",
    ),
    (
        r"Stale file handle|Transport endpoint is not connected|Input/output error|Host is down",
        "its mount on this worker is broken",
        "take the jobs that use it off this worker, and look at dmesg there",
    ),
)


def meaning(words: str) -> tuple[str, str]:
    """Returns meaning and remedy of an error, or empty texts if it is unknown."""
    return next(((why, remedy) for pattern, why, remedy in MEANINGS if re.search(pattern, words, re.I)), ("", ""))


def claim_problem(grant: Grant, claims: dict[tuple[str, str], Pod]) -> Finding | None:
    """Returns the finding for an unbound claim, or None if it is bound."""
    claim = claims.get((grant.namespace, grant.claim))
    where = f"{grant.storage}: PVC {grant.namespace}/{grant.claim}"
    if claim is None:
        message = f"{where} is not there"
        return finding(CLAIM_CHECK, "FAIL", "cluster", message, expected="Bound", remedy="run pai-install apply")
    phase = text(child(claim, "status").get("phase")) or "unknown"
    if phase == "Bound":
        return None
    remedy = f"run kubectl --namespace {grant.namespace} describe pvc {grant.claim}"
    return finding(
        CLAIM_CHECK, "FAIL", "cluster", f"{where} is not bound", value=phase, expected="Bound", remedy=remedy
    )


def node_problem(trial: Trial, nodes: dict[str, Pod]) -> Finding | None:
    """Returns the finding for an unavailable worker, or None if it is Ready."""
    node = nodes.get(trial.worker)
    if node is None:
        return unasked(trial, "not a node of the cluster", "pai-install apply")
    facts = node_facts(node)
    if facts["ready"] is True:
        return None
    remedy = "check journalctl --unit kubelet on the machine"
    return unasked(trial, "node is not Ready", remedy, facts["why"] or "NotReady")


def unasked(trial: Trial, why: str, remedy: str, value: str = "") -> Finding:
    """No verdict on the storage: the worker could not be asked."""
    message = f"{trial.grant.storage}: not tested, {why}"
    return finding(MOUNT_CHECK, "UNKNOWN", trial.worker, message, value=value[:400], remedy=remedy)


def ended(pod: Pod, events: list[str], age_s: float) -> bool:
    """Returns whether the result of a pod is final. events: messages of the kubelet. age_s: age of the pod in s."""
    if text(child(pod, "status").get("phase")) in ENDED:
        return True
    # An error of the first seconds may go away by itself, as when a driver is still starting.
    hopeless = waiting(pod)[0] in NO_IMAGE or any(not WAITS.search(line) for line in events)
    return hopeless and age_s >= FINAL_S and not started(pod)


def waiting(pod: Pod) -> tuple[str, str]:
    """Returns reason and message of the first container with a problem while it waits, or empty texts."""
    states = [child(row, "state", "waiting") for row in rows(child(pod, "status").get("containerStatuses"))]
    facts = [(text(state.get("reason")), text(state.get("message"))) for state in states]
    return next((entry for entry in facts if entry[0] not in ("", "ContainerCreating", "PodInitializing")), ("", ""))


def started(pod: Pod) -> bool:
    """Whether a container runs or ran: then the mount is there."""
    states = [child(row, "state") for row in rows(child(pod, "status").get("containerStatuses"))]
    return any("running" in state or "terminated" in state for state in states)


def mount_events(events: list[Pod]) -> dict[tuple[str, str], list[str]]:
    """Returns (namespace, pod) -> messages of the kubelet about its volumes, newest last."""
    found: dict[tuple[str, str], list[str]] = {}
    for event in sorted(events, key=lambda row: text(row.get("lastTimestamp"))):
        if text(event.get("reason")) in MOUNT_REASONS:
            about = child(event, "involvedObject")
            key = text(about.get("namespace")), text(about.get("name"))
            found.setdefault(key, []).append(" ".join(text(event.get("message")).split()))
    return found


def judge(trial: Trial, pod: Pod | None, events: list[str], log: str, waited_s: float) -> Finding:
    """The verdict on one storage and worker. log: of a pod that did not end, if it was asked for."""
    if pod is None:
        return unasked(trial, "its pod went away", "run the test again")
    facts = {**key_values(log), **_words(pod)}
    if "step" in facts:
        return judge_use(trial, facts, waited_s)
    return pod_problem(trial, pod) or unmounted(trial, events, waited_s)


def pod_problem(trial: Trial, pod: Pod) -> Finding | None:
    """Returns the finding for a pod that cannot start. It has no verdict if the storage is not the cause. None without
    a problem.
    """
    status, describe = child(pod, "status"), f"run kubectl describe node {trial.worker}"
    if waiting(pod)[0] in NO_IMAGE:
        why = "the worker cannot pull the image of the test pod"
        # A worker without the image says nothing about the storage, so there is no FAIL.
        return unasked(trial, why, "pai-install verify", " ".join(waiting(pod)))
    if text(status.get("reason")).startswith(NO_ROOM):
        refusal = f"{text(status.get('reason'))} {text(status.get('message'))}".strip()
        return unasked(trial, "the worker takes no pod", describe, refusal)
    if not text(status.get("startTime")):
        return unasked(trial, "its kubelet does not take the pod", "check journalctl --unit kubelet on the machine")
    return unasked(trial, "its pod said nothing", describe, _end(pod)) if started(pod) else None


def unmounted(trial: Trial, events: list[str], waited_s: float) -> Finding:
    """The verdict on a mount that does not come."""
    name = trial.grant.storage
    messages = [line for line in events if not WAITS.search(line)]
    if not messages:
        message = f"{name} cannot be mounted: the mount did not end within {waited_s:.0f} s"
        remedy = "check the server, the network to it, and journalctl --unit kubelet on the machine"
        value = _short(" ".join(events[-1:]))
        return finding(MOUNT_CHECK, "FAIL", trial.worker, message, value=value, remedy=remedy)
    # The last message counts: the kubelet tries again, and an earlier cause may be repaired.
    why, remedy = meaning(messages[-1])
    message = f"{name} cannot be mounted" + (f": {why}" if why else "")
    remedy = remedy or "check journalctl --unit kubelet on the machine"
    return finding(MOUNT_CHECK, "FAIL", trial.worker, message, value=_short(messages[-1]), remedy=remedy)


STEPS = {
    "stat": "looking at it",
    "list": "reading its folder",
    "refuse": "trying to write",
    "create": "making a folder",
    "prepare": "preparing the data",
    "write": "writing",
    "read": "reading back",
    "compare": "comparing",
    "remove": "removing",
}


def judge_use(trial: Trial, facts: dict[str, str], waited_s: float) -> Finding:
    """Returns the finding for a mounted storage, from the output of the pod."""
    name, step = trial.grant.storage, STEPS.get(facts["step"], facts["step"])
    if facts["step"] != "done" and "error" not in facts:
        message = f"{name} is mounted, and hangs: {step} did not end within {waited_s:.0f} s"
        remedy = "check the server, and dmesg on the machine"
        return finding(USE_CHECK, "FAIL", trial.worker, message, value=shape(facts), remedy=remedy)
    if facts["step"] == "prepare":
        remedy = f"run kubectl describe node {trial.worker}"
        return unasked(trial, "its pod could not create the test data", remedy, facts["error"])
    if facts["step"] == "compare":
        # This is the gravest result: a storage that loses data without an error.
        message = f"{name}: the data read differ from the data written"
        remedy = "use it for nothing until the server, its disks and the network are checked"
        return finding(USE_CHECK, "FAIL", trial.worker, message, value=_short(facts["error"]), remedy=remedy)
    if "error" in facts:
        why, remedy = meaning(facts["error"])
        message = f"{name} is mounted, and {step} failed" + (f": {why}" if why else "")
        value = "; ".join(filter(None, (_short(facts["error"]), shape(facts))))
        remedy = remedy or "dmesg on the machine, and the log of the server"
        return finding(USE_CHECK, "FAIL", trial.worker, message, value=value, remedy=remedy)
    return read_only(trial, facts) if trial.grant.read_only else used(trial, facts)


def read_only(trial: Trial, facts: dict[str, str]) -> Finding:
    """Returns the finding for a read-only storage."""
    name = trial.grant.storage
    # The mount is read-only in the site, and root on a worker could still write. So a group could.
    if facts.get("wrote") == "yes":
        remedy = "export it read-only on the server. The test data are deleted"
        message = f"{name} is read-only in the site, but writable"
        return finding(USE_CHECK, "FAIL", trial.worker, message, value=shape(facts), remedy=remedy)
    return finding(USE_CHECK, "PASS", trial.worker, f"{name}: is mounted, readable, and read-only", value=shape(facts))


def used(trial: Trial, facts: dict[str, str]) -> Finding:
    """Returns the finding for a storage after writing and reading."""
    memory = " from the worker's memory" if facts.get("from") == "memory" else ""
    rates = f"write {rate(facts, 'write')} MB/s, read {rate(facts, 'read')} MB/s{memory}"
    message = f"{trial.grant.storage}: mounts, writes, reads back the same"
    return finding(USE_CHECK, "PASS", trial.worker, message, value=f"{rates}; {shape(facts)}")


def shape(facts: dict[str, str]) -> str:
    """Mode and owner of the mounted folder, and whether other users than root may write."""
    others = {"yes": "other users may write", "no": "only root may write"}.get(facts.get("others", ""), "")
    mode = f"mode {facts['mode']}, owner {facts.get('owner', '?')}" if "mode" in facts else ""
    return ", ".join(filter(None, (mode, others)))


def rate(facts: dict[str, str], what: str) -> str:
    """MB/s (10^6 bytes) from hundredths of a second, which is how fine a worker's clock is here."""
    ticks, mib = facts.get(f"{what}_cs", ""), facts.get("mib", "")
    return f"{int(mib) * 2**20 / 1e4 / max(1, int(ticks)):.0f}" if ticks.isdigit() and mib.isdigit() else "?"


def _words(pod: Pod) -> dict[str, str]:
    """Returns the termination messages of the containers."""
    states = [child(row, "state", "terminated") for row in rows(child(pod, "status").get("containerStatuses"))]
    return key_values("\n".join(text(state.get("message")) for state in states))


def _end(pod: Pod) -> str:
    """How its containers ended."""
    states = [child(row, "state", "terminated") for row in rows(child(pod, "status").get("containerStatuses"))]
    return ", ".join(f"{text(state.get('reason'))} {state.get('exitCode')}" for state in states if state)


def _short(words: str) -> str:
    """Returns the end of a message, which usually contains the error."""
    return " ".join(words.split())[-400:]
