"""Storage: the machine's future exports, and the servers of its mounts."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.checks.result import Result, failed, passed
from pai_install.parts.storage_client import ExportCheck, export_checks
from pai_install.preflight.evidence import ExportAnswer
from pai_install.preflight.model import Case, machine_check

# neither the kernel's server nor nfs-ganesha exports these: files have no names there that outlive a restart
_NOT_SERVED = ("overlay", "tmpfs", "ramfs", "nfs", "cifs", "fuse", "9p", "squashfs")
_SAYS = {"silent": "does not answer", "missing": "does not serve it to this machine"}


@machine_check(
    id="storage-folder",
    title="The served folder is on a disk of this machine",
    reads="mounts: type of the file system below storage-manager.localpath, on machines with pai-storage",
    rule="FAIL for overlay, tmpfs, network, and FUSE file systems",
    remedy="mount an ext4 or xfs file system, or choose another folder (storage-manager.localpath in "
    "services-configuration.yaml)",
)
def folder(case: Case) -> Result | None:
    """Checks that the exported folder is on a suitable file system."""
    if not case.machine.storage:
        return None
    path = case.site.services.file_server.localpath
    mount = {mount.path: mount for mount in case.evidence.mounts}[path]
    if mount.filesystem.startswith(_NOT_SERVED):
        return failed(f"{path} is on {mount.filesystem}, which cannot be served", mount.filesystem, "ext4 or xfs")
    return passed(mount.filesystem, message=f"{path} can be served")


@machine_check(
    id="storage-quotas",
    title="The file system of the served folder enforces quotas",
    reads="mounts: project quotas below storage-manager.localpath, on machines with pai-storage, if the site has "
    "storage-manager.quotas",
    rule="FAIL when project quotas are not counted or not enforced",
    remedy="mount the file system with the option prjquota. For ext4, enable two features first: umount, then tune2fs "
    "-O project,quota -Q prjquota DEVICE. Or remove storage-manager.quotas",
)
def quotas(case: Case) -> Result | None:
    """Limits that the site asks for are kept."""
    server = case.site.services.file_server
    if not case.machine.storage or not (server.quotas.data or server.quotas.user):
        return None
    path = server.localpath
    mount = {mount.path: mount for mount in case.evidence.mounts}[path]
    if not mount.project_quotas:
        return failed(
            f"{mount.mount_point} ({mount.filesystem}) does not enforce project quotas, so {path} cannot have "
            "storage-manager.quotas",
            "no project quotas",
            "prjquota",
        )
    return passed("project quotas", message=f"{path} enforces quotas")


@machine_check(
    id="storage-servers",
    title="The NFS servers of the site export the storages to this machine",
    reads="exports: one NFS version 4 request for each storage on an external server",
    rule="FAIL when a server does not answer or does not export the storage. A server without NFS "
    "version 4.0 or with Kerberos only needs to answer",
    remedy=(
        "correct server and path of the storage, the server's list of clients, or the route to it. A storage outside "
        "services-configuration.yaml delays no machine"
    ),
)
def servers(case: Case) -> Result | None:
    """The servers that a worker will mount from are there."""
    wanted = tuple(export_checks(case.site)) if case.machine.worker else ()
    if not wanted:
        return None
    answers = tuple(zip(wanted, case.evidence.exports, strict=True))
    wrong = [_sentence(case, one, answer) for one, answer in answers if answer.answer in _SAYS]
    if wrong:
        return failed("storages cannot be mounted", "; ".join(wrong), "an answer, and the export")
    return passed("; ".join(_served(answers)), message="the storages' servers answer")


def _sentence(case: Case, check: ExportCheck, answer: ExportAnswer) -> str:
    key = "server" if answer.answer == "silent" else "path"
    place = case.site.places.get(f"storages.{check.number}.{key}", "services-configuration.yaml")
    return f"{place}: {check.server}:{check.path}: {check.server} {_SAYS[answer.answer]} ({answer.why})"


def _served(answers: tuple[tuple[ExportCheck, ExportAnswer], ...]) -> Iterator[str]:
    for export, answer in answers:
        note = f": answers, more cannot be seen ({answer.why})" if answer.answer == "unclear" else ""
        yield f"{export.server}:{export.path}{note}"
