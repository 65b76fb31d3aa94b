"""The variables by which OpenPAI tells an instance who it is and where the others are. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.compile.names import JobNames
from pai_install.jobs.model import Job, JobPort, Role
from pai_install.jobs.place import JobPlace

Object = dict[str, Any]

# a pod has an address of its own: its ports are in no one's way
FIRST_PORT = 10000
LAST_PORT = 65535
# where OpenPAI put a job's code
WORK_FOLDER = "/root"
# labels that every instance has in OpenPAI, whether its role names them or not
_ALWAYS = ("http", "ssh")
# what Linux takes as one variable of a program
_LONGEST = 131_000
# what says which devices a container sees: the scheduler's to set
VISIBLE = ("NVIDIA_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES")
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def ports_of(role: Role) -> Mapping[str, tuple[int, ...]]:
    """The numbers of each label: those that are wished for, else from 10000 on; the same for every instance.

    Raises PaiError where two labels wish for one number.
    """
    labels = {port.label for port in role.ports}
    requested = [*role.ports, *(JobPort(label, 1) for label in _ALWAYS if label not in labels)]
    found: dict[str, tuple[int, ...]] = {}
    taken: dict[int, str] = {}
    for port in sorted(requested, key=lambda it: not it.begin):  # those with a wish first
        numbers = _numbers(port, taken)
        for number in numbers:
            if number in taken or number > LAST_PORT:
                other = f"belongs to {taken[number]}" if number in taken else f"is above {LAST_PORT}"
                message = f"cannot assign port {number} of {port.label} in role {role.name}: it {other}"
                raise PaiError(
                    message, code="port-taken", remedy="choose another beginAt", exit_code=ExitCode.SITE_INVALID
                )
            taken[number] = port.label
        found[port.label] = numbers
    return {port.label: found[port.label] for port in requested}


def _numbers(port: JobPort, taken: Mapping[int, str]) -> tuple[int, ...]:
    if port.begin:
        return tuple(range(port.begin, port.begin + port.count))
    first = FIRST_PORT
    while any(number in taken for number in range(first, first + port.count)):
        first += 1
    return tuple(range(first, first + port.count))


def variables(job: Job, role: Role, place: JobPlace, names: JobNames, index: str) -> list[Object]:
    """All variables of a role's instances as a container's `env`. index: the field of the pod that has its number."""
    numbered = {"PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX"}
    if chosen := [name for name in VISIBLE if name in role.environment]:
        message = f"cannot set {chosen[0]} in role {role.name}: the scheduler assigns devices"
        raise PaiError(message, code="reserved-variable", remedy="remove the variable", exit_code=ExitCode.SITE_INVALID)
    known = {**_of_job(job, place, names), **_of_role(role)}
    own = {name: value for name, value in role.environment.items() if name not in {*known, *numbered}}
    for name, value in known.items():
        if len(value) > _LONGEST:
            message = f"cannot set {name}: {len(value)} characters are too many for a variable"
            raise PaiError(
                message, code="variable-too-long", remedy="use fewer instances", exit_code=ExitCode.SITE_INVALID
            )
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": index}}} for name in sorted(numbered)),
        # Kubernetes would take $(NAME) in a value for another variable's
        *({"name": name, "value": value.replace("$", "$$")} for name, value in {**own, **known}.items()),
    ]


def _of_job(job: Job, place: JobPlace, names: JobNames) -> dict[str, str]:
    user = place.owner.user
    found = {
        "PAI_JOB_NAME": f"{user}~{job.name}",
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "PAI_VIRTUAL_CLUSTER": place.cluster.name,
        "PAI_DEFAULT_FS_URI": "",
        "PAI_WORK_DIR": WORK_FOLDER,
        "PAI_TASKS_NUM": str(job.instances),
        "PAI_TASK_ROLE_COUNT": str(len(job.roles)),
        "PAI_TASK_ROLE_LIST": ",".join(role.name for role in job.roles),
        "PAI_TASK_ROLE_INSTANCES": ",".join(
            f"{role.name}:{index}" for role in job.roles for index in range(role.instances)
        ),
    }
    for role in job.roles:
        for word in _words(role.name):
            found |= dict(_of_any_role(role, word, names))
    return found


def _of_any_role(role: Role, word: str, names: JobNames) -> Iterator[tuple[str, str]]:
    """What everyone is told of a role. word: how its variables call it."""
    ports, requested = ports_of(role), role.resources
    hosts = [names.host_of(role, index) for index in range(role.instances)]
    yield f"PAI_TASK_ROLE_TASK_COUNT_{word}", str(role.instances)
    yield f"PAI_RESOURCE_{word}", f"{requested.gpus},{requested.cpu},{requested.memory_mb},{requested.shm_mb}"
    yield f"PAI_MIN_FAILED_TASK_COUNT_{word}", _count(role.min_failed)
    yield f"PAI_MIN_SUCCEEDED_TASK_COUNT_{word}", _count(role.min_succeeded)
    yield f"PAI_TASK_ROLE_{word}_HOST_LIST", ",".join(f"{host}:{ports['http'][0]}" for host in hosts)
    for index, host in enumerate(hosts):
        yield f"PAI_HOST_IP_{word}_{index}", host
        for label, numbers in ports.items():
            for name in _words(label):
                yield f"PAI_PORT_LIST_{word}_{index}_{name}", _list(numbers)


def _of_role(role: Role) -> dict[str, str]:
    """What an instance is told of its own role."""
    ports, requested = ports_of(role), role.resources
    return {
        "PAI_CURRENT_TASK_ROLE_NAME": role.name,
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": str(role.instances),
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": str(requested.cpu),
        "PAI_CURRENT_TASK_ROLE_MEM_MB": str(requested.memory_mb),
        "PAI_CURRENT_TASK_ROLE_SHM_MB": str(requested.shm_mb),
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": str(requested.gpus),
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": _count(role.min_failed),
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": _count(role.min_succeeded),
        "PAI_CONTAINER_HOST_PORT": _list(ports["http"]),
        "PAI_CONTAINER_SSH_PORT": _list(ports["ssh"]),
        **{
            f"PAI_CONTAINER_HOST_{word}_PORT_LIST": _list(numbers)
            for label, numbers in ports.items()
            for word in _words(label)
        },
    }


def _words(name: str) -> tuple[str, ...]:
    """How variables call it: as the user wrote it, and where no shell can name that, in capitals and '_' beside it."""
    if _SHELL_NAME.fullmatch(f"_{name}"):
        return (name,)
    return name, re.sub(r"[^A-Za-z0-9_]", "_", name).upper()


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


def _list(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
