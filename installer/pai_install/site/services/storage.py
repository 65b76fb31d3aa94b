"""Storage: OpenPAI's file server, and the disk of its own services."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pai_install.site.services.openpai import Service
from pai_install.site.services.section import Count, Free, Hidden, Word, choice


class StorageManager(Service):
    """storage-manager: an NFS and SMB server on the machines with pai-storage."""

    localpath: Word = "/share"
    """Folder that is served."""
    security_type: Annotated[str, choice("AUTO", "ADS")] = "AUTO"
    """Who may use SMB: AUTO (smbuser) or ADS (an Active Directory)."""
    workgroup: Word = "WORKGROUP"
    """SMB's workgroup or domain."""
    smbuser: Word | None = None
    """SMB account."""
    smbpwd: Hidden | None = None
    """Password of smbuser."""
    default_realm: Word | None = Field(default=None, alias="default_realm")
    """With ADS: the Kerberos realm."""
    krb5_realms: Free = Field(default=None, alias="krb5_realms")
    """With ADS: realms and their servers."""
    domain_realm: Free = Field(default=None, alias="domain_realm")
    """With ADS: domain -> realm."""
    domainuser: Word | None = None
    """With ADS: the account that joins the domain."""
    domainpwd: Hidden | None = None
    """Password of domainuser."""
    idmap: Free = None
    """With ADS: how accounts become numbers."""


class InternalStorage(Service):
    """internal-storage: the disk of OpenPAI's own services."""

    type: Annotated[str, choice("hostPath")] | None = None
    """Only hostPath is accepted."""
    root_path: Word = "/mnt/paiInternal"
    """Folder on the control plane."""
    quota_gb: Count = 30
    """Size of the disk."""
