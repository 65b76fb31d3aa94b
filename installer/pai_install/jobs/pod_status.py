"""A pod of the cluster -> state of an instance, as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pai_install.agents.common.owner_ports import SSH_PORT, WEB_PORT, labelled_port
from pai_install.agents.common.utilization import Utilization, utilization_of
from pai_install.kube.objects import JsonObject, child, conditions, holding, number, rows, text

State = Literal["WAITING", "STARTING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPING", "STOPPED"]
STATES: tuple[State, ...] = ("WAITING", "STARTING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPING", "STOPPED")
# conditions that say of a pod only that it is not ready yet
_UNREADY = frozenset({"Ready", "ContainersReady"})
ENDED: frozenset[State] = frozenset({"SUCCEEDED", "FAILED"})

POD_STATES: Mapping[str, State] = {"Running": "RUNNING", "Succeeded": "SUCCEEDED", "Failed": "FAILED"}


@dataclass(frozen=True, slots=True)
class Instance:
    """One pod of a role. machine: empty before it has one. exit_code: None while it runs. why: what it waits for.

    gone: the pod is no longer there; this is how it stood. started: when its machine took it. use: of its GPUs; None
    where its machine tells nothing of it. finished: when its container ended. restarts: of its container. address: its
    IP address. container: ID at the runtime. web_port, ssh_port: of its web page and its SSH server, 0 for
    none.
    """

    role: str
    index: int
    pod: str
    state: State
    machine: str = ""
    exit_code: int | None = None
    why: str = ""
    gone: bool = False
    started: str = ""
    use: Utilization | None = None
    finished: str = ""
    restarts: int = 0
    address: str = ""
    container: str = ""
    web_port: int = 0
    ssh_port: int = 0


def instance_of(role: str, index: int, pod: JsonObject) -> Instance:
    """Returns the state of a pod as an instance of its role."""
    status = child(pod, "status")
    machine = text(child(pod, "spec").get("nodeName"))
    phase = text(status.get("phase"))
    container = container_of(pod)
    state = child(container, "state")
    ended = child(state, "terminated")
    # The phase follows only when all containers have ended.
    failed = phase == "Failed" or bool(ended.get("exitCode"))
    state_word = "FAILED" if failed else POD_STATES.get(phase, "STARTING" if machine else "WAITING")
    if state_word in {"RUNNING", "STARTING"} and "deletionTimestamp" in child(pod, "metadata"):
        state_word = "STOPPING"
    return Instance(
        role,
        index,
        text(child(pod, "metadata").get("name")),
        state_word,
        machine,
        number(ended.get("exitCode")),
        why_of(status, state) if state_word in {"WAITING", "STARTING", "FAILED"} else _unwell(status, machine),
        started=text(status.get("startTime")),
        use=utilization_of(pod),
        finished=text(ended.get("finishedAt")),
        restarts=number(container.get("restartCount")) or 0,
        address=text(status.get("podIP")),
        container=text(container.get("containerID")),
        web_port=labelled_port(pod, WEB_PORT),
        ssh_port=labelled_port(pod, SSH_PORT),
    )


def _unwell(status: JsonObject, machine: str) -> str:
    """Why a pod that runs may not run much longer."""
    found = conditions(status.get("conditions"))
    taken = holding(found, "DisruptionTarget")
    if taken is not None:
        return f"taken off {machine}: {taken.message or taken.reason}"[:400]
    # what the kubelet said last is that all is well, and the cluster knows better
    well = all(row.get("ready") is True for row in rows(status.get("containerStatuses")))
    unready = any(one.type == "Ready" and one.status == "False" for one in found)
    return f"{machine} has not reported for a while" if well and unready and status.get("phase") == "Running" else ""


def container_of(pod: JsonObject) -> JsonObject:
    """How the first container of the pod stands, which is the job's; others go beside it."""
    name = next((row.get("name") for row in rows(child(pod, "spec").get("containers"))), None)
    states = rows(child(pod, "status").get("containerStatuses"))
    return next((row for row in states if name in (None, row.get("name"))), {})


def why_of(status: JsonObject, state: JsonObject) -> str:
    """What the pod waits for, or what ended it beside its own exit code."""
    ended = child(state, "terminated")
    if ended:
        reason = text(ended.get("reason"))
        # These two words say no more than the exit code.
        return "" if reason in {"Error", "Completed"} else reason
    waiting = child(state, "waiting")
    false = (one for one in conditions(status.get("conditions")) if one.status == "False" and one.message)
    unplaced = (one.message for one in false if one.type not in _UNREADY)
    own = f"{text(status.get('reason'))} {text(status.get('message'))}".strip()
    state_words = f"{text(waiting.get('reason'))} {text(waiting.get('message'))}".strip()
    # ContainerCreating is what every pod says at its start.
    return (own or (state_words if state_words != "ContainerCreating" else "") or next(unplaced, ""))[:400]
