"""The record of a lab before anything of it is made. Refuses names and subnets that are in use already."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pai_install.errors import PaiError
from pai_install.lab import cgroups, disk, network
from pai_install.lab.box import box_hierarchies
from pai_install.lab.names import lab_names, machine_names
from pai_install.lab.record import Kind, LabRecord, Ledger, Resource, is_abandoned, read_record
from pai_install.lab.spec import LabSpec


def planned_resources(spec: LabSpec, trees: Iterable[cgroups.Hierarchy]) -> tuple[Resource, ...]:
    """Returns all objects of `up` with names that are known in advance."""
    names = lab_names(spec)
    planned = [
        Resource(Kind.FOLDER, str(names.folder)),
        Resource(Kind.BRIDGE, names.bridge),
        Resource(Kind.NFT_TABLE, names.nft_table),
        *(Resource(Kind.CGROUP, str(folder)) for folder in cgroups.lab_folders(trees, names.lab)),
    ]
    for one in spec.machines:
        own = machine_names(spec, one)
        planned.append(Resource(Kind.MOUNT, str(own.disk)))
        planned.append(Resource(Kind.MOUNT, str(own.root)))
        planned.append(Resource(Kind.MOUNT, str(own.export)))
        planned.append(Resource(Kind.VETH, own.veth))
        planned.append(Resource(Kind.NETNS, own.netns))
    addresses = " ".join(str(one.address) for one in spec.machines)
    planned.append(Resource(Kind.KNOWN_HOSTS, str(spec.known_hosts), addresses))
    return tuple(planned)


def open_ledger(spec: LabSpec) -> Ledger:
    """The lab's record with everything planned in it, on disk.

    Raises PaiError when the subnet is another lab's or a name exists that no record explains.
    """
    names = lab_names(spec)
    record = read_record(names.record)
    planned = planned_resources(spec, box_hierarchies())
    if record is None:
        taken = [resource.name for resource in planned if exists(resource)]
        if taken:
            raise PaiError(
                f"cannot create the lab: these objects exist: {', '.join(taken)}",
                code="lab-names-taken",
                remedy="remove them, or choose addresses of another /24 network",
            )
        record = LabRecord(names.lab, str(spec.state_dir))
    check_owner(record, spec)
    ledger = Ledger(names.record, record)
    ledger.add(planned)
    return ledger


def check_owner(record: LabRecord, spec: LabSpec) -> None:
    """Raises PaiError when the record is that of another site."""
    if record.site != str(spec.state_dir):
        if is_abandoned(record):
            raise PaiError(
                f"cannot use {spec.subnet}: it belongs to the lab of {record.site}, which was deleted",
                code="lab-subnet-of-deleted-site",
                remedy="run pai-install lab down, which also removes labs of deleted sites",
            )
        raise PaiError(
            f"cannot use {spec.subnet}: it belongs to the lab of {record.site}",
            code="lab-subnet-in-use",
            remedy="run pai-install lab down for that site, or choose addresses of another /24 network",
        )


def exists(resource: Resource) -> bool:
    """Returns whether an object with a lab-specific name exists on the host. Files and folders are ignored."""
    match resource.kind:
        case Kind.BRIDGE | Kind.VETH:
            return network.has_link(resource.name)
        case Kind.NETNS:
            return network.has_netns(resource.name)
        case Kind.NFT_TABLE:
            return network.has_table(resource.name)
        case Kind.CGROUP:
            return Path(resource.name).is_dir()
        case Kind.MOUNT:
            return disk.is_mounted(Path(resource.name))
        case _:
            return False
