"""The identities of cache, component store, and machines: authorities, certificates, credentials, ports.

One file in the site's state folder contains everything. A rotation is a sequence of transitions with an update of
machines after each: first everyone trusts or accepts the new object, then it is used, then the old one is removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Self

import filelock
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, SecretStr, model_validator

from pai_install.registry.certificates import Use, expires, make_authority, make_serving
from pai_install.registry.content import Content
from pai_install.registry.model import ServedNames
from pai_install.system.files import private_folder, write_secret
from pai_install.system.state_file import MISSING, reading

_RENEW_BEFORE = timedelta(days=60)
_PASSWORD_BYTES = 24
_OPTIONAL = ("webhook", "console", "exporter", "scraper", "logs", "collector", "alertmanager")
_USES: Mapping[str, Use] = {"scraper": "client", "collector": "client", "alertmanager": "peer"}
_Kept = Annotated[SecretStr, PlainSerializer(SecretStr.get_secret_value, return_type=str)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Authority(_Value):
    """A certificate authority (PEM). generation: counts up from 1."""

    generation: int = Field(ge=1)
    certificate: str
    key: _Kept


class MachineLogin(_Value):
    """The account by which all machines reach the cache. generation: counts up from 1."""

    generation: int = Field(ge=1)
    name: str
    password: _Kept


class Serving(_Value):
    """A serving certificate (PEM), its key, and the names and addresses that it is for."""

    certificate: str
    key: _Kept
    names: tuple[str, ...] = Field(min_length=1)

    @property
    def chain(self) -> str:
        """Returns the certificate and its key in one file for a server. It is a secret."""
        return self.certificate + self.key.get_secret_value()


class Identity(_Value):
    """The whole identity. Machines trust every authority. The cache accepts all credentials and serves all ports. The
    newest of each is the last.

    serving_ca: generation of the authority that signed the certificates of cache and store, one of the authorities.
    used_login: generation of the credentials of machines, one of the logins. used_port: the port that machines use, one
    of the ports. Old files and sites without a cache have no ports and 0. salt: of digests that others may read, so
    that no one can guess a secret from them. It never changes. content: current place during a copy to the place in the
    site's files. left: the old place, from the switch until the verification of the copy. webhook: of the scheduler's
    admission, None if it creates its own or has none. console: of the console, None if it has another one or is none.
    exporter: of the metrics of machines, scraper: of their client, None without monitoring. logs: of the store of logs,
    collector: of its clients, None without a store. alertmanager: of the gossip of Alertmanagers, None without one.
    """

    authorities: tuple[Authority, ...] = Field(min_length=1)
    serving_ca: int
    cache: Serving
    store: Serving
    logins: tuple[MachineLogin, ...] = Field(min_length=1)
    used_login: int
    ports: tuple[int, ...] = ()
    used_port: int = 0
    salt: _Kept
    content: Content | None = None
    left: Content | None = None
    webhook: Serving | None = None
    console: Serving | None = None
    exporter: Serving | None = None
    scraper: Serving | None = None
    logs: Serving | None = None
    collector: Serving | None = None
    alertmanager: Serving | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_one_certificate(cls, value: object) -> object:
        """Upgrades an old file without a store certificate: it gets the cache's with other names, so `renewed` replaces
        it.
        """
        if isinstance(value, dict) and "certificate" in value:
            serving = {name: value[name] for name in Serving.model_fields if name in value}
            rest = {name: entry for name, entry in value.items() if name not in serving}
            return {**rest, "cache": serving, "store": serving}
        return value

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for entries in (self.authorities, self.logins):
            generations = [entry.generation for entry in entries]
            if generations != sorted(set(generations)):
                raise ValueError("generations must count up")
        if self.serving_ca not in {authority.generation for authority in self.authorities}:
            raise ValueError("the serving authority must be among the trusted ones")
        if self.used_login not in {login.generation for login in self.logins}:
            raise ValueError("the used login must be among the accepted ones")
        if self.used_port not in (self.ports or (0,)) or len(set(self.ports)) != len(self.ports):
            raise ValueError("the used port must be among those of the cache, each of them once")
        return self

    @property
    def bundle(self) -> str:
        """Returns the certificates of all authorities, which machines trust."""
        return "".join(authority.certificate for authority in self.authorities)

    @property
    def login(self) -> MachineLogin:
        """The login that machines use."""
        return next(login for login in self.logins if login.generation == self.used_login)

    @property
    def serving_authority(self) -> Authority:
        """The authority that signed the serving certificates."""
        return next(authority for authority in self.authorities if authority.generation == self.serving_ca)


def open_identity(path: Path, names: ServedNames, now: datetime) -> Identity:
    """Reads the file, or makes it where it is missing.

    Other names, or an end within 60 days, renew a serving certificate. Raises PaiError for a file that is none of ours.
    """
    private_folder(path.parent)
    # Two first commands at the same time must not make two authorities.
    with filelock.FileLock(path.with_name(f"{path.name}.lock"), mode=0o600):
        found = read_identity(path)
        wanted = make_identity(names, now) if found is None else at_port(renewed(found, names, now), names.port)
        if wanted != found:
            save(path, wanted)
        return wanted


def read_identity(path: Path) -> Identity | None:
    """Returns the identity in a file, or None if the file is missing. Raises PaiError for an invalid file."""
    remedy = "restore it from a backup. Without one, move it away, and the next apply makes another one"
    try:
        with reading(path, remedy, code="registry-identity-unusable"):
            return Identity.model_validate_json(path.read_bytes())
    except MISSING:
        return None


def save(path: Path, identity: Identity) -> None:
    """Replaces the file in one step, readable by its owner only (0600)."""
    write_secret(path, identity.model_dump_json(indent=2) + "\n")


def make_identity(names: ServedNames, now: datetime) -> Identity:
    """A new one: the first authority, certificates for these names, the first login."""
    authority = _new_authority(1, now)
    return Identity(
        authorities=(authority,),
        serving_ca=1,
        cache=_serving(authority, names.cache, now),
        store=_serving(authority, names.store, now),
        logins=(_new_login(1),),
        used_login=1,
        ports=(names.port,) if names.port else (),
        used_port=names.port,
        salt=SecretStr(secrets.token_hex(_PASSWORD_BYTES)),
        **_optional(None, authority, names, now),
    )


def renewed(identity: Identity, names: ServedNames, now: datetime) -> Identity:
    """Returns the identity with a new serving certificate if its names differ or it expires within 60 days, else
    unchanged.
    """
    authority = identity.serving_authority
    cache = _renewed(identity.cache, authority, names.cache, now)
    store = _renewed(identity.store, authority, names.store, now)
    optional = _optional(identity, authority, names, now)
    if (cache, store, *optional.values()) == (identity.cache, identity.store, *_kept(identity).values()):
        return identity
    return _changed(identity, cache=cache, store=store, **optional)


def _optional(
    identity: Identity | None, authority: Authority, names: ServedNames, now: datetime
) -> dict[str, Serving | None]:
    """Returns the certificates that not every site has, None for those without names."""
    kept = _kept(identity) if identity is not None else {}
    return {
        purpose: _renewed(kept.get(purpose), authority, wanted, now, _use(purpose)) if wanted else None
        for purpose, wanted in ((name, getattr(names, name)) for name in _OPTIONAL)
    }


def _kept(identity: Identity) -> dict[str, Serving | None]:
    return {purpose: getattr(identity, purpose) for purpose in _OPTIONAL}


def _use(purpose: str) -> Use:
    return _USES.get(purpose, "server")


def _renewed(
    serving: Serving | None, authority: Authority, names: Sequence[str], now: datetime, use: Use = "server"
) -> Serving:
    if serving and serving.names == tuple(names) and expires(serving.certificate) - now > _RENEW_BEFORE:
        return serving
    return _serving(authority, names, now, use)


def with_new_authority(identity: Identity, now: datetime) -> Identity:
    """Returns the identity with an authority that machines trust and nothing uses, unchanged if one is pending."""
    newest = identity.authorities[-1].generation
    if newest != identity.serving_ca:
        return identity
    return _changed(identity, authorities=(*identity.authorities, _new_authority(newest + 1, now)))


def serve_from(identity: Identity, generation: int, now: datetime) -> Identity:
    """Returns the identity with serving certificates of that authority. Raises ValueError for an untrusted one."""
    for authority in identity.authorities:
        if authority.generation == generation:
            cache = _serving(authority, identity.cache.names, now)
            store = _serving(authority, identity.store.names, now)
            optional = {
                purpose: serving and _serving(authority, serving.names, now, _use(purpose))
                for purpose, serving in _kept(identity).items()
            }
            return _changed(identity, serving_ca=generation, cache=cache, store=store, **optional)
    raise ValueError(f"authority {generation} is not among the trusted ones")


def without_old_authorities(identity: Identity) -> Identity:
    """Returns the identity without authorities older than the serving one. A pending newer one stays."""
    kept = tuple(authority for authority in identity.authorities if authority.generation >= identity.serving_ca)
    return _changed(identity, authorities=kept)


def with_new_login(identity: Identity) -> Identity:
    """Returns the identity with new credentials for machines. It reuses the last ones if some machines do not have them
    yet.
    """
    newest = identity.logins[-1]
    if len(identity.logins) == 1:
        newest = _new_login(newest.generation + 1)
        identity = _changed(identity, logins=(*identity.logins, newest))
    return _changed(identity, used_login=newest.generation)


def with_old_login(identity: Identity) -> Identity:
    """Returns the identity with machines at the oldest credentials. Newer ones stay accepted for machines
    that use them.
    """
    return _changed(identity, used_login=identity.logins[0].generation)


def without_other_logins(identity: Identity) -> Identity:
    """With the used login alone: for when every machine uses it."""
    return _changed(identity, logins=(identity.login,))


def at_port(identity: Identity, port: int) -> Identity:
    """Returns the identity with machines at the site's port, and the cache also at older ports. Unchanged if it is the
    newest.

    So a rolled back port is not used again until a rotation. port: 0 if the site has no cache.
    """
    if not port or identity.ports[-1:] == (port,):
        return identity
    others = tuple(other for other in identity.ports if other != port)
    return _changed(identity, ports=(*others, port), used_port=port)


def with_new_port(identity: Identity) -> Identity:
    """With machines at the newest port."""
    return _changed(identity, used_port=identity.ports[-1])


def with_old_port(identity: Identity) -> Identity:
    """Returns the identity with machines at the oldest port. The cache keeps serving newer ports for machines that use
    them.
    """
    return _changed(identity, used_port=identity.ports[0])


def without_other_ports(identity: Identity) -> Identity:
    """With the used port alone: for when every machine uses it."""
    return _changed(identity, ports=(identity.used_port,))


def with_content_kept(identity: Identity, content: Content) -> Identity:
    """With the cache at `content`, whatever the site's files say: the beginning of a move."""
    return _changed(identity, content=content, left=None)


def with_content_left(identity: Identity) -> Identity:
    """Returns the identity with the cache at the place in the site's files, and records the old place."""
    return _changed(identity, content=None, left=identity.content or identity.left)


def with_content_back(identity: Identity) -> Identity:
    """With the cache at the old place again."""
    return _changed(identity, content=identity.content or identity.left, left=None)


def without_move(identity: Identity) -> Identity:
    """Without a move: the site's files say where the content is."""
    return _changed(identity, content=None, left=None)


def _changed(identity: Identity, **values: object) -> Identity:
    """As model_copy, and checked again."""
    return Identity.model_validate({**{name: getattr(identity, name) for name in Identity.model_fields}, **values})


def _new_authority(generation: int, now: datetime) -> Authority:
    certificate, key = make_authority(f"pai-install registry CA {generation}", now)
    return Authority(generation=generation, certificate=certificate, key=SecretStr(key))


def _new_login(generation: int) -> MachineLogin:
    password = SecretStr(secrets.token_hex(_PASSWORD_BYTES))
    return MachineLogin(generation=generation, name=f"machines-{generation}", password=password)


def _serving(authority: Authority, names: Sequence[str], now: datetime, use: Use = "server") -> Serving:
    private = authority.key.get_secret_value()
    certificate, key = make_serving(authority.certificate, private, names, now, use=use)
    return Serving(certificate=certificate, key=SecretStr(key), names=tuple(names))
