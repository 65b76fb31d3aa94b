"""registry: upstreams of the cache, mirrors, and credentials of private registries. An extension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, model_validator

from pai_install.documents.document import Document, Entries
from pai_install.site.certificate import CertificateFile
from pai_install.site.fields import PlainUrl, Size
from pai_install.site.names import read_registry_host
from pai_install.site.secret import Secret
from pai_install.site.services.section import Count, Flag, KebabSection, ListOf, Word, Words

CACHE_PORT = 30500
DOCKER_HUB = "docker.io"
DOCKER_HUB_URL = "https://registry-1.docker.io"

RegistryHost = Annotated[str, BeforeValidator(read_registry_host), WithJsonSchema({"type": "string"})]


class UpstreamEntry(KebabSection):
    """registry.upstreams[]: a registry of images that machines pull."""

    name: RegistryHost
    """Registry in image names, such as quay.io."""
    url: PlainUrl | None = None
    """Address. [default: https:// and the name. For docker.io: docker_cache_remote_url of config.yaml]"""
    username: Word | None = None
    """Account of the cache at the registry."""
    password: Secret | None = None
    """Password of that account."""
    ca_file: CertificateFile | None = None
    """PEM file on the controller host with additional authorities of its certificate."""
    mirror: PlainUrl | None = None
    """URL of your own pull-through cache. Machines use it instead of the cache of pai-install."""
    mirror_username: Word | None = None
    """Account of the machines at the mirror."""
    mirror_password: Secret | None = None
    """Password of that account."""
    mirror_ca_file: CertificateFile | None = None
    """File (PEM) on the controller host with the authorities that signed the mirror's certificate."""

    @model_validator(mode="before")
    @classmethod
    def whole(cls, data: object, info: ValidationInfo) -> object:
        """Adds an error for incomplete credentials, and for mirror settings without a mirror."""
        report_half(data, info, "username", "password")
        report_half(data, info, "mirror-username", "mirror-password")
        for key in ("mirror-username", "mirror-password", "mirror-ca-file"):
            if isinstance(data, Entries) and data.get(key) and not data.get("mirror"):
                _add(data, info, (key,), "missing", "needs mirror", "add mirror: URL, or remove it")
        return data


class LoginEntry(KebabSection):
    """registry.logins[]: an account at a private registry, for all machines or for the pods of groups."""

    registry: RegistryHost
    """Host or host:port in image names."""
    username: Word
    """The account."""
    password: Secret
    """Its password."""
    groups: Words = ()
    """Groups with access to the login. [default: all pods]"""


class RegistrySection(KebabSection):
    """registry: which registries machines pull from, and how."""

    upstreams: Annotated[tuple[UpstreamEntry, ...], ListOf] = ()
    """Registries besides docker.io that the cache serves, or that have a mirror."""
    air_gapped: Flag = False
    """Whether machines pull only from the cache, even if it is down."""
    keep_days: Count = 30
    """Days after the last use until content is deleted. With Azure: days after the first pull."""
    size_limit: Size | None = None
    """Maximum size of the content, such as 200Gi. [default: 15 % of the disk stay free]"""
    azure_endpoint: PlainUrl | None = None
    """URL of the blob service, if it is not Azure's own."""
    logins: Annotated[tuple[LoginEntry, ...], ListOf] = Field(default=())
    """Accounts at private registries."""

    @model_validator(mode="before")
    @classmethod
    def each_once(cls, data: object, info: ValidationInfo) -> object:
        """Adds an error for a registry that is described twice."""
        _report_twice(data, info, "upstreams", "name", _once)
        _report_twice(data, info, "logins", "registry", _for_each_group)
        return data


def report_half(data: object, info: ValidationInfo, *keys: str) -> None:
    """Adds an error where one of two keys is given without the other."""
    if isinstance(data, Entries):
        given = [key for key in keys if data.get(key)]
        for missing in set(keys).difference(given) if given else ():
            _add(data, info, (given[0],), "missing", f"needs {missing}", "give both or neither")


def _once(entry: Entries) -> tuple[str, ...]:
    del entry
    return ("",)


def _for_each_group(entry: Entries) -> tuple[str, ...]:
    """Groups may have accounts of their own at one registry."""
    groups = entry.get("groups")
    return tuple(dict.fromkeys(map(str, groups))) if isinstance(groups, list) and groups else ("",)


def _report_twice(
    data: object, info: ValidationInfo, section: str, key: str, users: Callable[[Entries], tuple[str, ...]]
) -> None:
    entries = data.get(section) if isinstance(data, Entries) else None
    first: dict[tuple[str, str], int] = {}
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = str(entry.get(key, "")).strip() if isinstance(entry, Entries) else ""
        earlier = {first.setdefault((name, user), number) for user in (users(entry) if name else ())} - {number}
        if earlier and isinstance(data, Entries):
            remedy = f"merge the entries: the first is {section}[{min(earlier)}]"
            _add(data, info, (section, number, key), "twice", "is here a second time", remedy)


def _add(
    data: Entries, info: ValidationInfo, path: tuple[str | int, ...], code: str, message: str, remedy: str
) -> None:
    if isinstance(info.context, Document):
        info.context.add((*data.path, *path), f"site.{code}", message, remedy)
