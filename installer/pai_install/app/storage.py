"""Storages of the site: definitions, grants, and their state in the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from pai_install.app.context import App
from pai_install.app.site_edit import EditOptions, edit_services
from pai_install.cluster.client import ApiError, NoClusterError
from pai_install.cluster.read import mounts
from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.report.storage import STORAGE_LABEL, StorageReport, storage_shown
from pai_install.run.services_file import services_file
from pai_install.site.groups import PlacedGroup, groups_of
from pai_install.site.load import SERVICES
from pai_install.site.model import Site
from pai_install.site.services import read_services
from pai_install.site.services.storages import RULES, StorageEntry
from pai_install.site_edit.storages import added, granted, removed, revoked
from pai_install.site_edit.write import Value
from pai_install.storage.compile import grants_of
from pai_install.system.parameters import Parameter

SECRETS = ("account-key", "password")
_NAME = Parameter(positional=True, metavar="NAME")
_HOST, _WORD, _PATH = Parameter(metavar="HOST"), Parameter(metavar="NAME"), Parameter(metavar="PATH")


class StorageName(BaseModel):
    """One storage."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, _NAME]


class StorageSource(BaseModel):
    """The keys that say where a storage is. Empty keys were not given. No field holds a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    server: Annotated[str, _HOST] = Field(
        "", description="nfs, smb: the server. azureFile, azureBlob: a server other than Azure."
    )
    path: Annotated[str, _PATH] = Field("", description="nfs: the export. hostPath, local: the folder on the machine.")
    share_name: Annotated[str, _WORD] = Field(
        "", description="smb, azureFile: the share, optionally with /FOLDER below it."
    )
    container_name: Annotated[str, _WORD] = Field("", description="azureBlob: the container.")
    account_name: Annotated[str, _WORD] = Field("", description="azureFile, azureBlob: the storage account.")
    username: Annotated[str, _WORD] = Field("", description="smb: the account for the mount.")
    domain: Annotated[str, _WORD] = Field("", description="smb: the domain of the account.")
    machine: Annotated[str, _HOST] = Field("", description="local: the machine with the folder.")
    account_key_env: Annotated[str, _WORD] = Field(
        "", description="Environment variable with the account-key for `apply`."
    )
    account_key_file: Annotated[str, _PATH] = Field(
        "", description="File with the account-key, relative to the site folder."
    )
    password_env: Annotated[str, _WORD] = Field("", description="Environment variable with the password for `apply`.")
    password_file: Annotated[str, _PATH] = Field("", description="File with the password, relative to the site folder.")
    mount_options: Annotated[tuple[str, ...], Parameter(metavar="OPTION,...", split=True)] = Field(
        (), description="Mount options. Repeatable."
    )

    @model_validator(mode="after")
    def _has_one_place_per_secret(self) -> StorageSource:
        for key in SECRETS:
            if len(self._secret(key)) > 1:
                raise ValueError(f"give one of --{key}-env and --{key}-file")
        return self

    def keys(self) -> dict[str, Value]:
        """Keys of the section that were given, in its order, without the name."""
        found: dict[str, Value] = {}
        for name, info in StorageEntry.model_fields.items():
            if name == "name":
                continue
            key = info.alias or name
            value: Any = self._secret(key) if key in SECRETS else getattr(self, name, None)
            if isinstance(value, bool):
                # Of all switches only share says something when it is false. The others were just not given.
                value = str(value).lower() if value or name == "share" else None
            if value not in (None, (), "", {}):
                found[key] = list(value) if isinstance(value, tuple) else value
        return found

    def _secret(self, key: str) -> dict[str, str]:
        name = key.replace("-", "_")
        return {place: word for place in ("env", "file") if (word := getattr(self, f"{name}_{place}"))}


class AddStorage(EditOptions, StorageSource):
    """Defines a storage."""

    name: Annotated[str, _NAME]
    type: Annotated[str, Parameter(metavar="TYPE")] = Field(description=f"One of {', '.join(RULES)}.")
    capacity: Annotated[str, Parameter(metavar="SIZE", default="1Ti")] = Field(
        "", description="Maximum request of a claim, such as 10Ti."
    )
    access_mode: Annotated[
        Literal["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"] | None, Parameter(default="ReadWriteMany")
    ] = Field(None, description="Access mode of the volume.")
    read_only: bool = Field(default=False, description="Reject writes.")
    share: Annotated[bool | None, Parameter(default="share")] = Field(
        None, description="One folder for all users, or one per user."
    )
    description: Annotated[str, Parameter(metavar="TEXT")] = Field("", description="Content of the storage, for users.")

    @field_validator("type")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in RULES:
            raise ValueError(f"{value!r} is not a type of storage: {did_you_mean(value, RULES)}")
        return value

    @model_validator(mode="after")
    def _fits_its_type(self) -> AddStorage:
        keys, rule = self.keys(), RULES[self.type]
        missing = [key for key in rule.needs if key not in keys]
        if missing:
            raise ValueError(f"type {self.type} needs {', '.join(map(_option, missing))}")
        of_types = {key for one in RULES.values() for key in (*one.needs, *one.may)}
        require_keys_of_type(self.type, of_types.intersection(keys))
        return self


class StorageGroups(EditOptions):
    """A storage, and the groups that are granted it or lose it."""

    name: Annotated[str, _NAME]
    groups: Annotated[tuple[str, ...], Parameter(flag="--group", metavar="GROUP,...", split=True)] = Field(
        min_length=1, description="A group of authentication.group-manager. Repeatable."
    )


class RemoveStorage(EditOptions):
    """Removes the definition of a storage."""

    name: Annotated[str, _NAME]
    revoke: bool = Field(default=False, description="Also revoke its grants.")


def require_keys_of_type(storage_type: str, keys: Collection[str]) -> None:
    """Raises ValueError for a key that the type does not have."""
    rule = RULES[storage_type]
    if unknown := sorted(key for key in keys if key not in (*rule.needs, *rule.may)):
        raise ValueError(f"type {storage_type} has no {', '.join(map(_option, unknown))}")


def _option(key: str) -> str:
    return f"--{key}-env or --{key}-file" if key in SECRETS else f"--{key}"


def show_storage(app: App, name: str) -> tuple[StorageReport, int]:
    """A storage and its state in the cluster, and the exit code: UNREACHABLE or STEP_FAILED where that is unknown."""
    require_storage(app.site, name)
    namespaces = [grant.namespace for grant in grants_of(app.site) if grant.storage.name == name]
    try:
        return storage_shown(app.site, name, mounts(app.cluster, namespaces, f"{STORAGE_LABEL}={name}")), ExitCode.OK
    except (NoClusterError, ApiError) as error:
        cause = "; ".join(filter(None, (error.message, *error.details.splitlines())))
        return storage_shown(app.site, name, None, cause), error.exit_code


def grant_storage(app: App, request: StorageGroups) -> int:
    """Grants the storage to each group. The exit code."""

    def edit(site: Site, text: str) -> str:
        require_storage(site, request.name)
        for group in _groups(site, request.groups):
            if request.name in group.storages:
                app.notify(f"{group.name} has {request.name} already")
            text = granted(text, group.path, request.name)
        return text

    return edit_services(app, "storage grant", edit, request)


def revoke_storage(app: App, request: StorageGroups) -> int:
    """Revokes the storage from each group. The exit code."""

    def edit(site: Site, text: str) -> str:
        # A grant may outlive its definition, and it must be possible to take it away.
        if not any(request.name in group.storages for group in groups_of(site.services)):
            require_storage(site, request.name)
        for group in _groups(site, request.groups):
            if request.name not in group.storages:
                app.notify(f"{group.name} does not have {request.name}")
            text = revoked(text, group.path, request.name)
        return text

    return edit_services(app, "storage revoke", edit, request)


def add_storage(app: App, request: AddStorage) -> int:
    """Defines the storage. A storage of that name must have the same definition. The exit code."""
    name, entry = request.name, request.keys()

    def edit(site: Site, text: str) -> str:
        _require_free(site, name)
        if all(one.name != name for one in site.services.storages or ()):
            return added(text, {"name": name, **entry})
        # Written and read as the file is, so that defaults and spellings compare as equal.
        if _definition(added("", {"name": name, **entry}), name) != _definition(text, name):
            raise PaiError(
                f"cannot add {name}: it exists with another definition",
                code="storage-exists",
                remedy=(
                    f"edit {services_file(app.site_dir)}, or show the definition with pai-install storage show {name}"
                ),
                exit_code=ExitCode.USAGE,
            )
        app.notify(f"{name} has this definition already")
        return text

    return edit_services(app, "storage add", edit, request)


def remove_storage(app: App, request: RemoveStorage) -> int:
    """Removes the definition, and with `revoke` the grants. Data stays. The exit code."""
    name = request.name

    def edit(site: Site, text: str) -> str:
        require_storage(site, name)
        _require_defined(site, name)
        holders = [group for group in groups_of(site.services) if name in group.storages]
        if holders and not request.revoke:
            raise PaiError(
                f"cannot remove {name}: it is granted to {', '.join(group.name for group in holders)}",
                code="storage-granted",
                remedy="add --revoke to revoke it from these groups. Data stays",
                exit_code=ExitCode.PREFLIGHT_FAILED,
            )
        for group in holders:
            text = revoked(text, group.path, name)
        app.notify(f"the data of {name} stays in its place")
        return removed(text, name)

    return edit_services(app, "storage remove", edit, request)


def _require_free(site: Site, name: str) -> None:
    """Raises PaiError for the name of a claim that a rotation gave to another storage."""
    holder = next((other for other, it in site.rotations.items() if it.claim == name != other), "")
    if holder:
        raise PaiError(
            f"cannot add {name}: {holder} uses it as the name of its claim",
            code="storage-claim-in-use",
            remedy="choose another name",
            exit_code=ExitCode.USAGE,
        )


def _definition(text: str, name: str) -> object:
    """The definition in a text. Secrets are compared by their references, as their values may be unavailable here."""
    document = Document(SERVICES)
    # Editors of Windows may write a byte order mark.
    parse_document(text.removeprefix("\ufeff"), document)
    for number, one in enumerate(read_services(document).storages or ()):
        if one.name == name:
            plain = {key: value for key, value in one if not isinstance(value, SecretStr)}
            entry = document.at(("storages", number))
            assert isinstance(entry, dict)  # noqa: S101 - read_services read it
            return plain, {key: entry.get(key) for key in SECRETS}
    return None


def _require_defined(site: Site, name: str) -> None:
    """Raises PaiError for a storage with a definition that a rotation is about to write."""
    rotation = site.rotations.get(name)
    if rotation is not None and rotation.hidden:
        raise PaiError(
            f"cannot change {name}: a rotation was interrupted",
            code="storage-rotation-interrupted",
            remedy=f"run pai-install storage rotate {name} --finish",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def require_storage(site: Site, name: str) -> None:
    """Raises PaiError for an unknown storage."""
    known = [one.name for one in site.services.storages or ()]
    if name not in known:
        remedy = did_you_mean(name, known) if known else ""
        usual = "list storages with pai-install storage list" if known else "define one with pai-install storage add"
        raise PaiError(
            f"cannot find storage {name} in this site",
            code="unknown-storage",
            remedy=remedy or usual,
            exit_code=ExitCode.USAGE,
        )


def _groups(site: Site, names: Iterable[str]) -> list[PlacedGroup]:
    """The groups of these names. Raises PaiError for an unknown group."""
    known = {group.name: group for group in groups_of(site.services)}
    for name in names:
        if name not in known:
            remedy = did_you_mean(name, known) if known else ""
            remedy = remedy or f"define it in authentication.group-manager of {SERVICES}"
            raise PaiError(
                f"cannot find group {name} in this site", code="unknown-group", remedy=remedy, exit_code=ExitCode.USAGE
            )
    return [known[name] for name in names]
