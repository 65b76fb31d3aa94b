"""Names of the variables that OpenPAI gives a job's containers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.jobs.model import Job, Role

# ports that every instance has, asked for or not: OpenPAI's runtime adds them
USUAL_PORTS = ("ssh", "http")
_OF_JOB = (
    "PAI_JOB_NAME",
    "PAI_USER_NAME",
    "PAI_USERNAME",
    "PAI_VIRTUAL_CLUSTER",
    "PAI_WORK_DIR",
    "PAI_DEFAULT_FS_URI",
    "PAI_TASK_ROLE_COUNT",
    "PAI_TASK_ROLE_LIST",
    "PAI_TASK_ROLE_INSTANCES",
    "PAI_TASKS_NUM",
)
_OF_ROLE = (
    "PAI_TASK_ROLE_{}_HOST_LIST",
    "PAI_TASK_ROLE_TASK_COUNT_{}",
    "PAI_RESOURCE_{}",
    "PAI_MIN_FAILED_TASK_COUNT_{}",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_{}",
)
_OF_TASK = (
    "PAI_CURRENT_TASK_ROLE_NAME",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
    "PAI_TASK_INDEX",
    "PAI_CURRENT_TASK_ROLE_TASK_COUNT",
    "PAI_CURRENT_TASK_ROLE_CPU_COUNT",
    "PAI_CURRENT_TASK_ROLE_MEM_MB",
    "PAI_CURRENT_TASK_ROLE_SHM_MB",
    "PAI_CURRENT_TASK_ROLE_GPU_COUNT",
    "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT",
    "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT",
    "PAI_CONTAINER_HOST_PORT",
    "PAI_CONTAINER_SSH_PORT",
)


def ports_of(role: Role) -> tuple[str, ...]:
    """Labels of a role's ports, the usual ones last where the role does not ask for them itself."""
    return tuple(dict.fromkeys([*(port.label for port in role.ports), *USUAL_PORTS]))


def variable_names(job: Job, *, instances: bool = True) -> Iterator[str]:
    """Names in all containers. instances: with those of each instance of each role, else INDEX stands for them."""
    yield from _OF_JOB
    for role in job.roles:
        yield from (name.format(role.name) for name in _OF_ROLE)
    for role in job.roles:
        for index in range(role.instances) if instances else ("INDEX",):
            yield f"PAI_HOST_IP_{role.name}_{index}"
            yield from (f"PAI_PORT_LIST_{role.name}_{index}_{label}" for label in ports_of(role))
    yield from _OF_TASK


def own_variables(role: Role) -> tuple[str, ...]:
    """Names that differ from role to role: its ports, and what the job's file sets."""
    return (*(f"PAI_CONTAINER_HOST_{label}_PORT_LIST" for label in ports_of(role)), *role.environment)
