"""storages: shared folders that jobs mount. An extension. The groups contain the grants (storageConfigs)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema, model_validator

from pai_install.documents.document import Document, Entries
from pai_install.documents.quantity import QuantityError, parse_bytes
from pai_install.documents.scalars import invalid, read_text, shown
from pai_install.site.names import read_host_name, read_server, read_storage_folder
from pai_install.site.secret import Secret
from pai_install.site.services.section import Flag, KebabSection, Word, Words, choice

StorageType = Literal["nfs", "smb", "azureFile", "azureBlob", "hostPath", "local"]
AccessMode = Literal["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"]

# a PVC's name is a DNS label here: it is the last part of /mnt/NAME, and a part of the names of its volumes
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")
_LONGEST_DESCRIPTION = 500


@dataclass(frozen=True, slots=True)
class TypeRule:
    """Required keys of an entry's type, and optional keys in addition to those of all types."""

    needs: tuple[str, ...]
    may: tuple[str, ...] = ()


RULES: Mapping[str, TypeRule] = {
    "nfs": TypeRule(("server", "path"), ("mount-options",)),
    "smb": TypeRule(("server", "share-name", "username", "password"), ("domain", "mount-options")),
    "azureFile": TypeRule(("account-name", "account-key", "share-name"), ("server", "mount-options")),
    "azureBlob": TypeRule(("account-name", "account-key", "container-name"), ("server", "mount-options")),
    "hostPath": TypeRule(("path",)),
    "local": TypeRule(("path", "machine")),
}
# what mounts the types that Kubernetes does not mount itself
DRIVERS: Mapping[str, str] = {
    "smb": "smb.csi.k8s.io",
    "azureFile": "file.csi.azure.com",
    "azureBlob": "blob.csi.azure.com",
}
_OF_TYPES = frozenset(key for rule in RULES.values() for key in (*rule.needs, *rule.may))


def _read_storage_name(value: object) -> str:
    word = read_text(value)
    if _NAME.fullmatch(word) is None:
        meant = re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:50].strip("-")
        remedy = f"write {meant}" if meant else "write lower-case letters, digits and '-'"
        message = (
            f"{shown(word)} is no name for a storage: Kubernetes takes up to 50 lower-case letters, digits and '-'"
        )
        raise invalid("storage-name", message, remedy)
    return word


def _read_capacity(value: object) -> str:
    word = read_text(value)
    try:
        amount = parse_bytes(word)
    except QuantityError as error:
        raise invalid("quantity", str(error), error.remedy) from error
    if amount < 1:
        raise invalid("quantity", f"{shown(word)} is no room at all", "write it as Kubernetes does, e.g. 10Ti")
    return word


def _read_option(value: object) -> str:
    word = read_text(value)
    if not re.fullmatch(r"[\x21-\x7e]+", word) or "," in word:
        raise invalid("mount-option", f"{shown(word)} is not one mount option", "write each in a line of its own")
    return word


def _read_description(value: object) -> str:
    word = read_text(value)
    if len(word) > _LONGEST_DESCRIPTION:
        message = f"has {len(word)} characters, and a description {_LONGEST_DESCRIPTION} at most"
        raise invalid("storage-description", message, "shorten it, and name a page with the rest")
    return word


StorageName = Annotated[str, BeforeValidator(_read_storage_name), WithJsonSchema({"type": "string"})]
Capacity = Annotated[str, BeforeValidator(_read_capacity), WithJsonSchema({"type": ["string", "integer"]})]
MountOption = Annotated[str, BeforeValidator(_read_option), WithJsonSchema({"type": "string"})]
Folder = Annotated[str, BeforeValidator(read_storage_folder), WithJsonSchema({"type": "string"})]
Server = Annotated[str, BeforeValidator(read_server), WithJsonSchema({"type": "string"})]
Description = Annotated[str, BeforeValidator(_read_description), WithJsonSchema({"type": "string"})]
MachineName = Annotated[str, BeforeValidator(read_host_name), WithJsonSchema({"type": "string"})]


class StorageEntry(KebabSection):
    """storages[]: a folder that groups are granted. Which keys it needs is its type's (RULES)."""

    name: StorageName
    """Name for jobs, and of the PVC in the namespace of a group."""
    type: Annotated[StorageType, choice(*RULES)]
    """Kind of the storage: nfs, smb, azureFile, azureBlob, hostPath, or local."""
    server: Server | None = None
    """nfs, smb: the server. azureFile, azureBlob: the host, if it is not Azure's own."""
    path: Folder | None = None
    """nfs: the export. hostPath, local: the folder on the machine."""
    share_name: Word | None = None
    """smb, azureFile: the share, optionally with a subfolder after /."""
    container_name: Word | None = None
    """azureBlob: the container."""
    account_name: Word | None = None
    """azureFile, azureBlob: the storage account."""
    account_key: Secret | None = None
    """azureFile, azureBlob: its key."""
    username: Word | None = None
    """smb: the account of the machines."""
    password: Secret | None = None
    """smb: its password."""
    domain: Word | None = None
    """smb: its domain."""
    machine: MachineName | None = None
    """local: the machine."""
    capacity: Capacity = "1Ti"
    """Maximum size of a claim. Kubernetes does not enforce it. Set a quota on the server."""
    access_mode: Annotated[AccessMode, choice("ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce")] = "ReadWriteMany"
    """Access mode of Kubernetes: ReadWriteMany, ReadOnlyMany, or ReadWriteOnce."""
    read_only: Flag = False
    """Mount read-only in all pods."""
    mount_options: Annotated[tuple[MountOption, ...], Words] = ()
    """Options of the mount, e.g. nfsvers=4.1."""
    share: Flag = True
    """Whether users share the folder. false: one folder per user."""
    description: Description = ""
    """Content of the storage, for users. Up to 500 characters on the page of storages."""

    @model_validator(mode="before")
    @classmethod
    def as_its_type(cls, data: object, info: ValidationInfo) -> object:
        """Adds an error for each key that the type needs, and a warning for each that it does not know."""
        rule = RULES.get(str(data.get("type", "")).strip()) if isinstance(data, Entries) else None
        if rule is None or not isinstance(data, Entries) or not isinstance(info.context, Document):
            return data
        for key in rule.needs:
            if data.get(key) in (None, ""):
                message = f"type {data['type']} needs {key}"
                info.context.add(data.path, "site.missing", message, f"add {key}", severity="error")
        for key in sorted(_OF_TYPES.difference(rule.needs, rule.may).intersection(data)):
            message = f"has no effect: type {data['type']} has no {key}"
            info.context.add((*data.path, key), "site.no-effect", message, "remove it", severity="warning")
        return data

    @property
    def written(self) -> bool:
        """Returns whether pods may write. Kubernetes does not enforce access modes, so ReadOnlyMany is
        mounted read-only.
        """
        return not self.read_only and self.access_mode != "ReadOnlyMany"
