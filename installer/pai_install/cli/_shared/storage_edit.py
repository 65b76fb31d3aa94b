"""Verbs that edit storages and grants in services-configuration.yaml."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import SecretStr

from pai_install.cli._shared.site_edit import Editing, edited
from pai_install.cli._shared.storage_entry import SECRETS, Entry
from pai_install.cli._shared.tell import say
from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.site.groups import PlacedGroup, groups_of
from pai_install.site.load import SERVICES
from pai_install.site.model import Site
from pai_install.site.services import read_services
from pai_install.site_edit.storages import added, granted, removed, revoked


def grant_storage(editing: Editing, name: str, groups: Iterable[str]) -> int:
    """Grants it to each of the groups."""

    def edit(site: Site, text: str) -> str:
        known_storage(site, name)
        for group in _groups(site, groups):
            if name in group.storages:
                say(f"{name} is granted to {group.name} already")
            text = granted(text, group.path, name)
        return text

    return edited(editing, "storage grant", edit)


def revoke_storage(editing: Editing, name: str, groups: Iterable[str]) -> int:
    """Takes it away from each of the groups."""

    def edit(site: Site, text: str) -> str:
        if not any(name in group.storages for group in groups_of(site.services)):
            known_storage(site, name)
        for group in _groups(site, groups):
            if name not in group.storages:
                say(f"{name} is not granted to {group.name}")
            text = revoked(text, group.path, name)
        return text

    return edited(editing, "storage revoke", edit)


def add_storage(editing: Editing, name: str, entry: Entry) -> int:
    """Defines it; a storage of that name must be defined alike."""

    def edit(site: Site, text: str) -> str:
        _require_free(site, name)
        if all(one.name != name for one in site.services.storages or ()):
            return added(text, {"name": name, **entry})
        if _defined(added("", {"name": name, **entry}), name) != _defined(text, name):
            remedy = f"change it in {editing.file}; storage show {name} shows it"
            raise PaiError(
                f"{name} is defined already, and otherwise",
                code="storage-exists",
                remedy=remedy,
                exit_code=ExitCode.USAGE,
            )
        say(f"{name} is defined so already")
        return text

    return edited(editing, "storage add", edit)


def _require_free(site: Site, name: str) -> None:
    """Raises PaiError for the name of a claim that a rotation gave to another storage."""
    holder = next((other for other, it in site.rotations.items() if it.claim == name != other), "")
    if holder:
        raise PaiError(
            f"{name} is the claim of {holder} now",
            code="storage-claim-in-use",
            remedy="take another name",
            exit_code=ExitCode.USAGE,
        )


def _defined(text: str, name: str) -> object:
    """What a text makes of a storage; its secrets as they are written, as they may be unavailable here."""
    document = Document(SERVICES)
    parse_document(text.removeprefix("\ufeff"), document)
    for number, one in enumerate(read_services(document).storages or ()):
        if one.name == name:
            plain = {key: value for key, value in one if not isinstance(value, SecretStr)}
            written = document.at(("storages", number))
            assert isinstance(written, dict)  # noqa: S101 - that is what was read
            return plain, {key: written.get(key) for key in SECRETS}
    return None


def remove_storage(editing: Editing, name: str, *, with_grants: bool) -> int:
    """Takes its definition away, and its grants where that is asked for."""

    def edit(site: Site, text: str) -> str:
        known_storage(site, name)
        _require_whole(site, name)
        holders = [group for group in groups_of(site.services) if name in group.storages]
        if holders and not with_grants:
            raise PaiError(
                f"{name} is granted to {', '.join(group.name for group in holders)}",
                code="storage-granted",
                remedy="add --revoke to take it away from them, too; data stays",
                exit_code=ExitCode.PREFLIGHT_FAILED,
            )
        for group in holders:
            text = revoked(text, group.path, name)
        say(f"the data of {name} stays where it is")
        return removed(text, name)

    return edited(editing, "storage remove", edit)


def _require_whole(site: Site, name: str) -> None:
    """Raises PaiError for a storage whose definition a rotation is about to write."""
    rotation = site.rotations.get(name)
    if rotation is not None and rotation.hidden:
        remedy = f"pai-install storage rotate {name} --finish"
        raise PaiError(
            f"a rotation of {name} was interrupted",
            code="storage-rotation-interrupted",
            remedy=remedy,
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def known_storage(site: Site, name: str) -> None:
    """Raises PaiError for a name that no storage of the site has."""
    known = [one.name for one in site.services.storages or ()]
    if name not in known:
        remedy = did_you_mean(name, known) if known else ""
        remedy = remedy or f"pai-install storage {'list shows them' if known else 'add defines one'}"
        raise PaiError(
            f"{name} is no storage of this site", code="unknown-storage", remedy=remedy, exit_code=ExitCode.USAGE
        )


def _groups(site: Site, names: Iterable[str]) -> list[PlacedGroup]:
    """The groups of those names. Raises PaiError for one that the site does not have."""
    known = {group.name: group for group in groups_of(site.services)}
    for name in names:
        if name not in known:
            remedy = (
                did_you_mean(name, known) if known else ""
            ) or f"define it in authentication.group-manager of {SERVICES}"
            raise PaiError(
                f"{name} is no group of this site", code="unknown-group", remedy=remedy, exit_code=ExitCode.USAGE
            )
    return [known[name] for name in names]
