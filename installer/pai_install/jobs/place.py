"""Where a job goes: its group's namespace, its virtual cluster, the claims of its storages. Pure.

What the API server would refuse a user is refused here: it refuses an administrator nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.model import Job, Role
from pai_install.profile.model import ProfileGrant
from pai_install.scheduling.admission import allowed, clusters_at
from pai_install.scheduling.model import Priority, Scheduling, Supply, VirtualCluster

# a label's value, which a user's name becomes
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Claim:
    """What a pod mounts of a storage. folder: below it; empty: all of it. machine: the only node that has it, or ""."""

    name: str
    folder: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True)
class JobOwner:
    """Whose a job is, and where the group's jobs are."""

    user: str
    group: str
    namespace: str


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a job goes. claims: of its storages, by their names."""

    scheduling: Scheduling
    cluster: VirtualCluster
    priority: Priority
    owner: JobOwner
    claims: Mapping[str, Claim] = field(default_factory=dict)

    @property
    def machine(self) -> str:
        """The only node that has the folders of its storages, or ""."""
        return next((claim.machine for claim in self.claims.values() if claim.machine), "")

    def supply(self, role: Role) -> Supply:
        """The machines that a role asks devices of. Raises PaiError where there are none, or it does not say which."""
        own = [it for it in _reachable(self.scheduling, self.cluster) if role.resources.sku in (None, it.sku)]
        fit = [it for it in own if bool(it.resource) == bool(role.resources.gpus)] or own
        if not fit or (role.resources.gpus and not fit[0].resource):
            raise _usage("devices-not-in-virtual-cluster", *_no_supply(self, role))
        # A pod asks for a resource by its name, which differs between vendors.
        if role.resources.gpus and len({it.resource for it in fit}) > 1:
            names = ", ".join(it.sku for it in fit)
            raise _usage(
                "sku-ambiguous",
                f"role {role.name} does not say of which machines its devices are: {names}",
                "name the SKU",
            )
        return fit[0]


def place(
    job: Job,
    scheduling: Scheduling,
    owner: JobOwner,
    grants: Iterable[ProfileGrant],
    queue: tuple[str | None, Priority | None],
) -> JobPlace:
    """The place of a job. Raises PaiError for a queue, a storage, or devices that the group may not use.

    grants: current ones. queue: virtual cluster and priority in place of the file's.
    """
    found = seat(scheduling, owner, queue[0] or job.virtual_cluster, queue[1] or job.priority)
    found = replace(found, claims=dict(_claims(job, owner, grants)))
    _require_one_machine(found.claims)
    for role in job.roles:
        if role.resources.gpus or role.resources.sku:
            found.supply(role)
    return found


def seat(scheduling: Scheduling, owner: JobOwner, cluster: str | None, priority: Priority | None) -> JobPlace:
    """A job's place by what is asked for; None: as the virtual cluster has it. Raises PaiError for what may not be."""
    if _LABEL_VALUE.fullmatch(owner.user) is None:
        raise _usage(
            "user-name-not-a-label",
            f"{owner.user!r} is no name for a user here: Kubernetes takes up to 63 letters, digits, '-', '_' and '.'",
            "give one with --user",
        )
    found = _cluster(scheduling, owner, cluster)
    chosen = priority or found.usual
    if chosen not in allowed(found):
        names_allowed = ", ".join(allowed(found))
        raise _usage(
            "priority-not-allowed",
            f"jobs of {found.name} may not have the priority {chosen}",
            f"it allows {names_allowed}: --priority",
        )
    return JobPlace(scheduling, found, chosen, owner)


def _cluster(scheduling: Scheduling, owner: JobOwner, name: str | None) -> VirtualCluster:
    """The one that is named, else `default`, else the only one that the group may use."""
    may = clusters_at(scheduling).get(owner.namespace, ())
    names = [it.name for it in may]
    if not may:
        raise _usage(
            "group-without-virtual-cluster",
            f"group {owner.group} may submit to no virtual cluster",
            "pai-install vc list",
        )
    wanted = name or ("default" if "default" in names else names[0] if len(names) == 1 else None)
    if wanted is None:
        raise _usage(
            "virtual-cluster-ambiguous", "the job names no virtual cluster", f"add --vc, one of {', '.join(names)}"
        )
    if wanted not in names:
        known = any(it.name == wanted for it in scheduling.clusters)
        reason = f"group {owner.group} may not submit to {wanted}" if known else f"{wanted} is no virtual cluster"
        raise _usage(
            "virtual-cluster-not-allowed" if known else "unknown-virtual-cluster",
            reason,
            f"it may submit to {', '.join(names)}: --vc",
        )
    return next(it for it in may if it.name == wanted)


def _claims(job: Job, owner: JobOwner, grants: Iterable[ProfileGrant]) -> Iterable[tuple[str, Claim]]:
    own = {grant.storage: grant for grant in grants if grant.group == owner.group and grant.current}
    for storage in job.storages:
        grant = own.get(storage)
        if grant is None or not grant.claimed:
            granted = ", ".join(own) or "none"
            raise _usage(
                "storage-not-granted",
                f"group {owner.group} is not granted the storage {storage}",
                f"the group has {granted}. Run pai-install storage grant {storage} --group {owner.group}",
            )
        yield storage, Claim(grant.claim, "" if grant.shared else owner.user, grant.machine)


def _require_one_machine(claims: Mapping[str, Claim]) -> None:
    machines = {claim.machine: storage for storage, claim in claims.items() if claim.machine}
    if len(machines) > 1:
        named = ", ".join(f"{storage} on {machine}" for machine, storage in machines.items())
        raise _usage(
            "storages-on-different-nodes",
            f"cannot place the job: its storages are folders of different nodes: {named}",
            "mount storages of one node, or a storage of type nfs",
        )


def _reachable(scheduling: Scheduling, cluster: VirtualCluster) -> list[Supply]:
    """The SKUs of which the virtual cluster has a share or machines."""
    pinned = {scheduling.skus[machine] for machine in cluster.pinned if machine in scheduling.skus}
    return [it for it in scheduling.supply.values() if cluster.share(it.sku) is not None or it.sku in pinned]


def _no_supply(place: JobPlace, role: Role) -> tuple[str, str]:
    has = ", ".join(it.sku for it in _reachable(place.scheduling, place.cluster)) or "nothing"
    what = f"machines {role.resources.sku}" if role.resources.sku else "machines with devices"
    if role.resources.sku and role.resources.gpus and role.resources.sku in place.scheduling.supply:
        what = f"devices of {role.resources.sku}"
    return f"cannot place role {role.name}: {place.cluster.name} has no {what}", f"choose from: {has}"


def _usage(code: str, message: str, remedy: str) -> PaiError:
    return PaiError(message, code=code, remedy=remedy, exit_code=ExitCode.USAGE)
