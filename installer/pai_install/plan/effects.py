"""The effects of a phase on running services: restarts and stops, known before the run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.parts.addon import RECORD_PREFIX
from pai_install.parts.logs import BUFFER as LOG_BUFFER
from pai_install.parts.logs import FOLDER as LOG_FOLDER
from pai_install.parts.monitoring import FOLDER
from pai_install.parts.part import Part
from pai_install.parts.registry import PARTS
from pai_install.plan.observed import Observed
from pai_install.registry.content import content_of_variables, read_note

_PARTS: Mapping[str, Part] = {part.name: part for part in PARTS}
DOCKER = "docker.service"
_MONITORING, _LOGS = f"{RECORD_PREFIX}monitoring", f"{RECORD_PREFIX}logs"
_BY_ENVIRONMENT = "container_runtime_gpu_visible_to_all"


def effects(roles: tuple[str, ...], wanted: Mapping[str, Mapping[str, str]], seen: Observed) -> tuple[str, ...]:
    """Sentences without a full stop, in the order of the roles: "restarts docker.service", "may restart ...".

    wanted: role -> variable -> digest. A service that does not run is only started, which is no effect.
    """
    return tuple(dict.fromkeys(word for role in roles for word in _of_role(role, wanted.get(role, {}), seen)))


def _of_role(role: str, wanted: Mapping[str, str], seen: Observed) -> Iterator[str]:
    record = seen.roles.get(role)
    if record is None:
        part = _PARTS.get(role)
        if part is not None:
            yield from (f"restarts {unit}" for unit in part.restarts if unit in seen.services)
            yield from (f"stops and disables {unit}" for unit in part.stops if unit in seen.services)
        return
    yield from (f"restarts {unit}" for unit in record.restarts)
    changed = [name for name in wanted if wanted[name] != record.settings.get(name)]
    declared = _PARTS[role].model.restarting() if role in _PARTS else {}
    sure = dict.fromkeys(unit for name in changed for unit in declared.get(name, ()) if unit in record.readers)
    yield from (f"restarts {unit}" for unit in sure if unit not in record.restarts)
    if any(name not in declared for name in changed):  # another version of the role may write any of its files
        yield from (f"may restart {unit}" for unit in record.readers if unit not in (*sure, *record.restarts))


def impact(
    roles: tuple[str, ...], found: tuple[str, ...], variables: Mapping[str, Any], seen: Observed
) -> tuple[str, ...]:
    """Returns the consequences for running programs on the machine. found: the effects. variables: of its roles."""
    return (
        *_on_containers(found, variables, seen),
        *_on_packages(roles, variables, seen),
        *_on_gpu_pods(roles, variables, seen),
        *_on_driver(roles, variables, seen),
        *_on_networks(roles, seen),
        *_on_pulls(roles, seen),
        *_on_cache(roles, variables, seen),
        *_on_metrics(roles, variables, seen),
        *_on_logs(roles, variables, seen),
    )


def _on_containers(found: tuple[str, ...], variables: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    count, gpus = seen.docker.containers, seen.in_use.gpu_containers
    if count and any(word.endswith(f" {DOCKER}") for word in found):
        them, keep = ("1 running container", "keeps") if count == 1 else (f"{count} running containers", "keep")
        if variables.get("container_runtime_live_restore", True):
            yield f"{them} of Docker {keep} running: live-restore is turned on first"
            if seen.in_use.docker_stops_with_containerd:
                yield "Docker's unit stops while containerd restarts, and starts again with it"
        else:
            yield f"{them} of Docker will stop: the site says docker_live_restore: false"
    if gpus and any(word.endswith(".service") for word in found):
        them = "1 container has" if gpus == 1 else f"{gpus} containers have"
        yield f"{them} an NVIDIA device open: systemd reloads its units, which may take the device away"
        if variables.get(_BY_ENVIRONMENT) is False:
            yield "started again by docker run --gpus, it gets no GPU unless gpu_visible_to_all_containers is true"


def _on_packages(roles: tuple[str, ...], variables: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    """Yields a warning at the start of an upgrade. docs/upgrade.md describes the upgrade of one machine."""
    if "container_runtime" not in roles or "container_runtime" in seen.roles:
        return
    if variables.get("container_runtime_docker", "none") != "none":
        yield "packages of Docker, containerd and the NVIDIA toolkit stay at their version when the system is upgraded"


def _on_gpu_pods(roles: tuple[str, ...], variables: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    """Versions before this setting gave pods their GPUs by NVIDIA_VISIBLE_DEVICES, which the runtime ignores now."""
    record = seen.roles.get("container_runtime")
    if record is None or "container_runtime" not in roles or not variables.get("container_runtime_nvidia"):
        return
    if variables.get(_BY_ENVIRONMENT) is False and _BY_ENVIRONMENT not in record.settings:
        yield "pods with GPUs keep them until a container of theirs starts again: recreate them when this run has ended"
        yield "pods that start before the add-ons are applied get no GPUs"


def _on_driver(roles: tuple[str, ...], variables: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    """A driver is exchanged by a restart of the machine, which is the admin's to do."""
    branch = variables.get("nvidia_driver_branch")
    if "nvidia_driver" not in roles or not branch:
        return
    loaded = seen.nvidia.driver
    if seen.nvidia.nouveau:
        yield f"nouveau drives the NVIDIA devices until the machine restarts; from then on the driver {branch} does"
    elif loaded and loaded.partition(".")[0] != str(branch):
        yield f"the NVIDIA driver {loaded} stays loaded until the machine restarts; from then on it is {branch}"
        yield "until then programs that start meet libraries of another version than the driver, and get no GPU"
    elif loaded:
        yield f"the NVIDIA driver {loaded} stays loaded; a newer version of {branch} is when the machine restarts"
    else:
        yield f"the NVIDIA driver {branch} is loaded without a restart"


def _on_networks(roles: tuple[str, ...], seen: Observed) -> Iterator[str]:
    if "pod_forwarding" in roles and "pod_forwarding" not in seen.roles and seen.in_use.dropped_forwarding:
        chains = ", ".join(seen.in_use.dropped_forwarding)
        yield f"the firewall drops what the machine forwards ({chains}): packets of pods are accepted there"
    if "container_runtime" in roles and "container_runtime" not in seen.roles and seen.in_use.cni_files:
        files = ", ".join(seen.in_use.cni_files)
        yield f"containerd no longer reads /etc/cni/net.d ({files})"


def _on_pulls(roles: tuple[str, ...], seen: Observed) -> Iterator[str]:
    """Versions before this setting served components without TLS."""
    record = seen.roles.get("component_store")
    if "component_store" in roles and record is not None and "component_store_private_key" not in record.settings:
        yield "the store speaks TLS from then on: machines pull the system's images again once this run reached them"


def _on_cache(roles: tuple[str, ...], variables: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    """Yields a warning: a cache at a new place starts empty, but a rotation would copy the content."""
    record = seen.roles.get("docker_cache")
    used = read_note(record.notes.get("content", "")) if record else None
    moves = variables.get("docker_cache_move")  # a rotation brings it along
    if used is None or moves or "docker_cache" not in roles or not variables.get("docker_cache_upstreams"):
        return
    wanted = content_of_variables(variables["docker_cache_folder"], variables["docker_cache_azure"])
    if wanted != used:
        yield f"the Docker cache begins empty in {wanted}; what it has stays in {used}"
        yield "pai-install registry rotate --backend, in place of apply, brings the content along"


def _is_turned_off(addon: str, roles: tuple[str, ...], variables: Mapping[str, Any], seen: Observed) -> bool:
    record = seen.roles.get(addon)
    wanted = {f"{RECORD_PREFIX}{addon['name']}" for addon in variables.get("cluster_addons_wanted", ())}
    return addon in roles and record is not None and bool(record.settings) and addon not in wanted


def _on_metrics(roles: tuple[str, ...], variables: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    """Yields the data that stays when monitoring is turned off."""
    if _is_turned_off(_MONITORING, roles, variables, seen):
        yield f"metrics stay in {FOLDER} on the control planes: delete the folder to remove them"


def _on_logs(roles: tuple[str, ...], variables: Mapping[str, Any], seen: Observed) -> Iterator[str]:
    """Yields the data that stays when the store of logs is turned off."""
    if _is_turned_off(_LOGS, roles, variables, seen):
        yield f"logs stay in {LOG_FOLDER} on the control planes: delete the folder to remove them"
        yield f"logs on their way stay in {LOG_BUFFER} on each machine: delete the folder to remove them"
