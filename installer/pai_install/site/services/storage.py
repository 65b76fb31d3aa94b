"""Storage: the file server, as OpenPAI configured its own, and the disk of OpenPAI's services."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pai_install.site.field_metadata import NotYet
from pai_install.site.services.openpai import Service
from pai_install.site.services.section import Count, Free, Hidden, KebabSection, Word, choice
from pai_install.site.services.storages import Capacity, Folder

_SMB = NotYet("storage-manager serves NFS alone: SMB is not set up by this version")
# below localpath, as OpenPAI had them: what is everybody's, and a folder per user
FOLDERS = ("data", "users")


class Quotas(KebabSection):
    """storage-manager.quotas: limits of folders on the server's disk, which needs project quotas. An extension."""

    data: Capacity | None = None
    """Quota of the folder data, such as 10Ti."""
    user: Capacity | None = None
    """Quota of each folder in users. New folders get it with the next apply."""


class StorageManager(Service):
    """storage-manager: the file server on the machines with pai-storage."""

    localpath: Folder = "/share"
    """Folder of the machine. NFS exports its subfolders data and users."""
    quotas: Quotas = Quotas()
    """Disk quotas of the folders. [default: no quotas]"""
    security_type: Annotated[str, choice("AUTO", "ADS"), _SMB] = "AUTO"
    """Who may use SMB: AUTO (smbuser) or ADS (an Active Directory)."""
    workgroup: Annotated[Word, _SMB] = "WORKGROUP"
    """SMB's workgroup or domain."""
    smbuser: Annotated[Word | None, _SMB] = None
    """SMB account."""
    smbpwd: Annotated[Hidden | None, _SMB] = None
    """Password of smbuser."""
    default_realm: Annotated[Word | None, _SMB] = Field(default=None, alias="default_realm")
    """With ADS: the Kerberos realm."""
    krb5_realms: Annotated[Free, _SMB] = Field(default=None, alias="krb5_realms")
    """With ADS: realms and their servers."""
    domain_realm: Annotated[Free, _SMB] = Field(default=None, alias="domain_realm")
    """With ADS: domain -> realm."""
    domainuser: Annotated[Word | None, _SMB] = None
    """With ADS: the account that joins the domain."""
    domainpwd: Annotated[Hidden | None, _SMB] = None
    """Password of domainuser."""
    idmap: Annotated[Free, _SMB] = None
    """With ADS: how accounts become numbers."""

    @property
    def exports(self) -> tuple[str, ...]:
        """The folders that machines may mount."""
        return tuple(f"{self.localpath.rstrip('/')}/{name}" for name in FOLDERS)


class InternalStorage(Service):
    """internal-storage: the disk of OpenPAI's own services."""

    type: Annotated[str, choice("hostPath")] | None = None
    """Only hostPath is accepted."""
    root_path: Word = "/mnt/paiInternal"
    """Folder on the control plane."""
    quota_gb: Count = 30
    """Size of the disk."""
