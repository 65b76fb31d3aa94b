"""`lab down`: removes exactly the lab's objects. It looks for the record's entries on the host."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pai_install.errors import PaiError
from pai_install.lab import cgroups, disk, keys, machine, network
from pai_install.lab.box import lab_lock, restore_settings
from pai_install.lab.names import LABS_DIR, RECORD_NAME
from pai_install.lab.record import Kind, LabRecord, Ledger, Resource, is_abandoned, names_site, read_record
from pai_install.lab.spec import LabSpec
from pai_install.system.files import temporary_prefix, write_atomic
from pai_install.system.proc import run

_DOOMED = ".removed"  # what a lab's folder name ends with while it is being removed


def down(spec: LabSpec, *, progress: Callable[[str], None] = lambda _line: None) -> tuple[str, ...]:
    """Deletes the site's lab and returns its existing objects. Raises PaiError with the remaining objects."""
    return down_site(spec.state_dir, progress=progress)


def down_site(state_dir: Path, *, progress: Callable[[str], None] = lambda _line: None) -> tuple[str, ...]:
    """Deletes every lab of the site with that `.pai` folder, even if its files changed or are invalid.

    It also deletes labs of deleted site folders, because no site can name them. Returns the deleted objects. Raises
    PaiError with the remaining objects.
    """
    if not LABS_DIR.exists():
        return ()
    removed: list[str] = []
    with lab_lock():
        for folder in _cut_short():
            shutil.rmtree(folder, ignore_errors=True)
        labs = labs_of(state_dir)
        for path, record in labs:
            removed += remove_all(Ledger(path, record), progress)
        kubeconfig = state_dir / "kubeconfig"  # of a cluster that is gone
        if labs and kubeconfig.is_file():
            kubeconfig.unlink()
            removed.append(f"file {kubeconfig}")
        restore_settings()
    return tuple(removed)


def labs_of(state_dir: Path) -> tuple[tuple[Path, LabRecord], ...]:
    """Record files, with their contents, of the labs that `lab down` of a site removes: its own, and the abandoned.

    Raises PaiError when a record of the site cannot be read.
    """
    folder = str(state_dir)
    for path in _records():
        if names_site(path, folder):
            read_record(path)
    return tuple((path, record) for path, record in all_labs() if record.site == folder or is_abandoned(record))


def all_labs() -> tuple[tuple[Path, LabRecord], ...]:
    """Record files, with their contents, of the labs on the box that this version can read.

    Other versions may write of kinds that it does not know: their labs are theirs to remove.
    """
    found = []
    for path in _records():
        with suppress(PaiError):
            found.append((path, read_record(path)))
    return tuple((path, record) for path, record in found if record is not None)


def _cut_short() -> list[Path]:
    """Folders of a removal, or of a first record, whose program was killed. Nothing else of these labs exists."""
    removed = list(LABS_DIR.glob(f"*{_DOOMED}"))
    begun = {path.parent for path in LABS_DIR.glob(f"*/{temporary_prefix(RECORD_NAME)}*")}
    return removed + [folder for folder in begun if not (folder / RECORD_NAME).exists()]


def _records() -> list[Path]:
    return sorted(LABS_DIR.glob(f"*/{RECORD_NAME}"))


def removal_order(record: LabRecord) -> tuple[Resource, ...]:
    """Returns recorded resources in the order of removal: users before the resources that they use.

    Within a kind the newest is first: a machine's root lies over its disk.
    """
    return tuple(resource for kind in Kind for resource in reversed(record.of(kind)))


def remove_all(ledger: Ledger, notify: Callable[[str], None]) -> tuple[str, ...]:
    """Deletes everything in the record and returns the objects that existed. Raises PaiError with the remaining
    objects.
    """
    record = ledger.record
    removed: list[str] = []
    failed: list[str] = []
    # Running machines keep mounts and interfaces in use.
    _end_processes(record)
    for resource in removal_order(record):
        try:
            was_there = REMOVERS[resource.kind](resource)
        except (OSError, PaiError) as error:
            failed.append(f"{resource.kind} {resource.name}: {error}")
            continue
        if was_there:
            removed.append(f"{resource.kind} {resource.name}")
            notify(f"removed {removed[-1]}")
    if failed:
        raise PaiError(
            "cannot remove the lab completely",
            code="lab-not-removed",
            details="\n".join(failed),
            remedy="run pai-install lab down again",
        )
    return tuple(removed)


def _end_processes(record: LabRecord) -> None:
    # also finds a machine that was started but not written down before a crash
    groups = [Path(resource.name) for resource in record.of(Kind.CGROUP)]
    keepers = [machine.Process.parse(resource.detail) for resource in record.of(Kind.PROCESS)]
    try:
        machine.kill(keepers, groups)
    except TimeoutError as error:
        raise PaiError(
            str(error),
            code="lab-processes-not-ended",
            remedy="find the blocked processes with ps and dmesg, then run pai-install lab down again",
        ) from error


def _was_running(resource: Resource) -> bool:
    return not machine.Process.parse(resource.detail).alive


def _delete_table(resource: Resource) -> bool:
    return network.has_table(resource.name) and run(["nft", "delete", "table", "ip", resource.name]).ok


def _delete_forward_rules(resource: Resource) -> bool:
    rules = network.forward_rules(resource.name)
    done = [run(["iptables", "-w", "-D", *rule], check=False).ok for rule in rules]
    return any(done)


def _remove_cgroup(resource: Resource) -> bool:
    was_there = Path(resource.name).is_dir()
    cgroups.remove(Path(resource.name))
    return was_there


def _forget_hosts(resource: Resource) -> bool:
    path = Path(resource.name)
    if not path.exists():
        return False
    before = path.read_text()
    after = keys.known_hosts_text(before, {}, resource.detail.split())
    if not after:
        path.unlink()
    elif after != before:
        write_atomic(path, after)
    return after != before


def _remove_key_pair(resource: Resource) -> bool:
    key = Path(resource.name)
    was_there = key.exists()
    _unlink([key, key.with_name(f"{key.name}.pub")])
    return was_there


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _remove_folder(resource: Resource) -> bool:
    path = Path(resource.name)
    if not path.is_dir():
        return False
    if f" {path}/" in Path("/proc/self/mounts").read_text():
        raise OSError("something is still mounted below it")
    # first out of the way in one step: a lab is there with its whole folder and record, or not at all
    doomed = path.with_name(f"{path.name}{_DOOMED}")
    path.rename(doomed)
    shutil.rmtree(doomed)
    return True


REMOVERS: Mapping[Kind, Callable[[Resource], bool]] = {
    Kind.PROCESS: _was_running,
    Kind.MOUNT: lambda resource: disk.unmount(Path(resource.name)),
    Kind.VETH: lambda resource: network.delete_link(resource.name),
    Kind.NETNS: lambda resource: network.delete_netns(resource.name),
    Kind.BRIDGE: lambda resource: network.delete_link(resource.name),
    Kind.NFT_TABLE: _delete_table,
    Kind.FORWARD_RULE: _delete_forward_rules,
    Kind.CGROUP: _remove_cgroup,
    Kind.KNOWN_HOSTS: _forget_hosts,
    Kind.KEY_PAIR: _remove_key_pair,
    Kind.MIXIN: lambda _resource: False,  # it goes with its machine's disk
    Kind.FOLDER: _remove_folder,
}
