"""Options of what defines a storage: all keys of the section storages, or those that a rotation changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import click

from pai_install.cli.options import names
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.site.rotations import Value as Kept
from pai_install.site.services.storages import RULES, StorageEntry
from pai_install.site_edit.write import Value

Entry = Mapping[str, Value]
Changes = Mapping[str, Kept]

SECRETS = ("account-key", "password")
_WORDS = (
    ("server", "HOST", "nfs, smb: the server. azureFile, azureBlob: a server other than Azure."),
    ("path", "PATH", "nfs: the export. hostPath, local: the folder on the machine."),
    ("share-name", "NAME", "smb, azureFile: the share, with folders below it after /."),
    ("container-name", "NAME", "azureBlob: the container."),
    ("account-name", "NAME", "azureFile, azureBlob: the storage account."),
    ("username", "NAME", "smb: the account for the mount."),
    ("domain", "NAME", "smb: the domain of the account."),
    ("machine", "HOST", "local: the machine with the folder."),
    ("capacity", "SIZE", "Maximum request of a claim, such as 10Ti.  [default: 1Ti]"),
)


def _secret_options(key: str) -> tuple[Callable[..., Any], ...]:
    parameter = key.replace("-", "_")
    return (
        click.option(
            f"--{key}-env",
            f"{parameter}_env",
            metavar="NAME",
            help=f"Environment variable with the {key} for `apply`.",
        ),
        click.option(
            f"--{key}-file",
            f"{parameter}_file",
            metavar="PATH",
            help=f"File with the {key}, relative to the site folder.",
        ),
    )


def _type(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value not in RULES:
        message = f"{value!r} is no type of storage; {did_you_mean(value, RULES)}"
        raise click.BadParameter(message, ctx=context, param=parameter)
    return value


_mount_options = click.option(
    "--mount-options", multiple=True, callback=names, metavar="OPTION,...", help="Mount options. Repeatable."
)
_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--type", required=True, callback=_type, metavar="TYPE", help=f"One of {', '.join(RULES)}."),
    *(click.option(f"--{key}", key.replace("-", "_"), metavar=what, help=text) for key, what, text in _WORDS),
    *(option for key in SECRETS for option in _secret_options(key)),
    click.option(
        "--access-mode",
        type=click.Choice(["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"]),
        help="Access mode of the volume.  [default: ReadWriteMany]",
    ),
    click.option("--read-only", is_flag=True, help="Reject writes."),
    _mount_options,
    click.option(
        "--share/--no-share", default=None, help="One folder for all users, or one per user.  [default: share]"
    ),
)


_PLACES = tuple(word for word in _WORDS if word[0] != "capacity")
_ROTATED: tuple[Callable[..., Any], ...] = (
    *(click.option(f"--{key}", key.replace("-", "_"), metavar=what, help=text) for key, what, text in _PLACES),
    *(option for key in SECRETS for option in _secret_options(key)),
    _mount_options,
)


def change_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds the options of what a rotation may change and gives the verb their values as one `changes`."""
    keys = (*(key for key, _what, _text in _PLACES), "mount-options", *_secret_names())
    own = {key.replace("-", "_") for key in keys}

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(**words: Any) -> int:  # noqa: ANN401 - click's values
        given = {key: words.pop(key) for key in list(words) if key in own}
        return verb(changes=_kept(_given(given)), **words)

    command: Callable[..., int] = gathered
    for option in reversed(_ROTATED):
        command = option(command)
    return command


def _kept(given: Entry) -> Changes:
    """As the state of a rotation keeps it."""
    return {key: it if isinstance(it, str | Mapping) else tuple(it) for key, it in given.items()}


def entry_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds the options to a verb and gives it their values as one `entry`, without the name.

    The verb raises PaiError for keys that the type lacks or has not.
    """
    own = {option.replace("-", "_") for option in _keys()}

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(**words: Any) -> int:  # noqa: ANN401 - click's values
        given = {key: words.pop(key) for key in list(words) if key in own}
        return verb(entry=_entry(given), **words)

    command: Callable[..., int] = gathered
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _keys() -> tuple[str, ...]:
    plain = [info.alias or key for key, info in StorageEntry.model_fields.items() if key != "name"]
    return (*plain, *_secret_names())


def _secret_names() -> tuple[str, ...]:
    return tuple(f"{key}-{place}" for key in SECRETS for place in ("env", "file"))


def _entry(given: Mapping[str, Any]) -> dict[str, Value]:
    found = _given(given)
    _require_keys(found)
    return found


def _given(given: Mapping[str, Any]) -> dict[str, Value]:
    """The keys that were given, in the order of the section."""
    found: dict[str, Value] = {}
    for name, info in StorageEntry.model_fields.items():
        key, value = info.alias or name, given.get(name)
        if key in SECRETS:
            value = _secret(key, given)
        if isinstance(value, bool):
            value = str(value).lower() if value or name == "share" else None
        if value not in (None, (), ""):
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


def _secret(key: str, given: Mapping[str, Any]) -> dict[str, str] | None:
    name = key.replace("-", "_")
    places = {place: given[f"{name}_{place}"] for place in ("env", "file") if given.get(f"{name}_{place}")}
    if len(places) > 1:
        raise PaiError(
            f"--{key}-env and --{key}-file: give one of them",
            code="storage-secret-given-twice",
            exit_code=ExitCode.USAGE,
        )
    return places or None


def _require_keys(entry: Entry) -> None:
    """What the type needs and has, as far as options go; all else is the site's to say."""
    rule = RULES[str(entry["type"])]
    of_types = {key for one in RULES.values() for key in (*one.needs, *one.may)}
    missing = [key for key in rule.needs if key not in entry]
    if missing:
        raise PaiError(
            f"type {entry['type']} needs {', '.join(map(_option, missing))}",
            code="storage-options-missing",
            exit_code=ExitCode.USAGE,
        )
    require_of_type(str(entry["type"]), [key for key in entry if key in of_types])


def require_of_type(storage_type: str, changes: Collection[str]) -> None:
    """Raises PaiError for a key that the type has not."""
    rule = RULES[storage_type]
    strange = [key for key in changes if key not in (*rule.needs, *rule.may)]
    if strange:
        raise PaiError(
            f"type {storage_type} has no {', '.join(map(_option, strange))}",
            code="storage-options-unknown",
            exit_code=ExitCode.USAGE,
        )


def _option(key: str) -> str:
    return f"--{key}-env or --{key}-file" if key in SECRETS else f"--{key}"
