"""Storage: the machine's future exports, and the servers of its mounts."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.checks.result import Result, failed, passed
from pai_install.parts.storage_client import AskedExport, asked_exports
from pai_install.preflight.evidence import ExportAnswer
from pai_install.preflight.model import Case, machine_check

# neither the kernel's server nor nfs-ganesha exports these: files have no names there that outlive a restart
_NOT_SERVED = ("overlay", "tmpfs", "ramfs", "nfs", "cifs", "fuse", "9p", "squashfs")
_SAYS = {"silent": "does not answer", "missing": "does not serve it to this machine"}


@machine_check(
    id="storage-folder",
    title="The folder that is served is on a disk of this machine",
    reads="mounts: type of the file system below storage-manager.localpath, on machines with pai-storage",
    rule="FAIL for overlay, tmpfs, network and FUSE file systems",
    remedy="mount an ext4 or xfs file system there, or choose another folder (storage-manager.localpath in "
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
    title="The file system of the folder that is served keeps the site's quotas",
    reads="mounts: whether project quotas are counted and enforced below storage-manager.localpath, on machines with "
    "pai-storage, where the site has storage-manager.quotas",
    rule="FAIL where they are not",
    remedy="mount the file system with the option prjquota. For ext4, enable two features before: umount, then tune2fs "
    "-O project,quota -Q prjquota DEVICE. Or take storage-manager.quotas away",
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
            f"{mount.mount_point} ({mount.filesystem}) keeps no project quotas, so {path} cannot have "
            "storage-manager.quotas",
            "no project quotas",
            "prjquota",
        )
    return passed("project quotas", message=f"{path} keeps quotas")


@machine_check(
    id="storage-servers",
    title="The NFS servers of the site answer, and serve its storages to this machine",
    reads="exports: one request of NFS version 4 for each storage whose server is no machine of the site",
    rule="FAIL when a server does not answer, or has no such export for this machine; a server that speaks no NFS "
    "version 4.0 or asks for Kerberos is only known to answer",
    remedy="correct server and path of the storage, the server's list of clients, or the route to it. A storage that "
    "is left out of services-configuration.yaml keeps no machine back",
)
def servers(case: Case) -> Result | None:
    """The servers that a worker will mount from are there."""
    wanted = tuple(asked_exports(case.site)) if case.machine.worker else ()
    if not wanted:
        return None
    answers = tuple(zip(wanted, case.evidence.exports, strict=True))
    wrong = [_told(case, one, said) for one, said in answers if said.answer in _SAYS]
    if wrong:
        return failed("storages cannot be mounted", "; ".join(wrong), "an answer, and the export")
    return passed("; ".join(_served(answers)), message="the storages' servers answer")


def _told(case: Case, asked: AskedExport, said: ExportAnswer) -> str:
    key = "server" if said.answer == "silent" else "path"
    place = case.site.places.get(f"storages.{asked.number}.{key}", "services-configuration.yaml")
    return f"{place}: {asked.server}:{asked.path}: {asked.server} {_SAYS[said.answer]} ({said.why})"


def _served(answers: tuple[tuple[AskedExport, ExportAnswer], ...]) -> Iterator[str]:
    for asked, said in answers:
        note = f": answers, more cannot be seen ({said.why})" if said.answer == "unclear" else ""
        yield f"{asked.server}:{asked.path}{note}"
