"""Users of the cluster: groups, their grants, and the identity provider."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from pai_install.documents.document import Entries
from pai_install.documents.scalars import invalid, read_text, shown
from pai_install.site.certificate import CertificateFile
from pai_install.site.fields import IssuerUrl
from pai_install.site.services.openpai import Service
from pai_install.site.services.section import (
    Flag,
    Hidden,
    KebabSection,
    ListOf,
    Section,
    Whole,
    Word,
    Words,
    choice,
    tell_missing,
)


def _read_group_name(value: object) -> str:
    word = read_text(value)
    if not word.replace("_", "a").isalnum() or not word.isascii():
        raise invalid("group-name", f"{shown(word)} is not a group name", "use letters, digits, and '_', but not '-'")
    return word


GroupName = Annotated[str, BeforeValidator(_read_group_name)]
DataSource = Annotated[str, choice("basic", "winbind", "ms-graph")]


class Acls(Section):
    """The grants of a group."""

    admin: Flag = False
    """Whether its members administrate the cluster."""
    virtual_clusters: Words = Field(default=(), alias="virtualClusters")
    """Virtual clusters that it may submit jobs to."""
    storage_configs: Words = Field(default=(), alias="storageConfigs")
    """Storages that it may mount."""


class Extension(Section):
    """OpenPAI's additional data of a group."""

    acls: Acls = Acls()
    """What the group may use."""


class Group(Section):
    """A group of people."""

    @model_validator(mode="before")
    @classmethod
    def has_name(cls, data: object, info: ValidationInfo) -> object:
        """Warns of a group without a name."""
        tell_missing(data, info, "groupname")
        return data

    groupname: GroupName | None = None
    """Its name; letters, digits and '_'."""
    description: Word | None = None
    """Free text."""
    external_name: Word | None = Field(default=None, alias="externalName")
    """Its name in the directory: whose tokens have it in their groups is a member."""
    extension: Extension = Extension()
    """What it may use."""


class GroupManager(KebabSection):
    """authentication.group-manager."""

    @model_validator(mode="before")
    @classmethod
    def has_groups(cls, data: object, info: ValidationInfo) -> object:
        """Warns of the two groups that OpenPAI always makes: with this section, it took none from its defaults."""
        tell_missing(data, info, "admin-group", "default-group")
        return data

    group_data_source: DataSource = "basic"
    """Where members are kept: basic, winbind or ms-graph."""
    winbind_server_address: Word | None = None
    """With winbind: its server."""
    admin_group: Group | None = None
    """The administrators."""
    default_group: Group | None = None
    """Everyone."""
    grouplist: Annotated[tuple[Group, ...], ListOf] = ()
    """All other groups."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups: the administrators, everyone, the others in order."""
        first = tuple(group for group in (self.admin_group, self.default_group) if group is not None)
        return (*first, *self.grouplist)


class Aad(Section):
    """authentication.AAD: an application in Azure Active Directory."""

    well_known_url: Word | None = Field(default=None, alias="wellKnownURL")
    """Where the directory describes itself; {tenantID} in it stands for that."""
    tenant_id: Word | None = Field(default=None, alias="tenantID")
    """The directory."""
    client_id: Word | None = Field(default=None, alias="clientID")
    """The application."""
    client_secret: Hidden | None = Field(default=None, alias="clientSecret")
    """The application's secret, for sign-in at the console. API servers need none."""
    nonce_lifetime: Whole | None = Field(default=None, alias="nonceLifetime")
    """Seconds that a login may take."""
    nonce_max_amount: Whole | None = Field(default=None, alias="nonceMaxAmount")
    """Logins at a time."""
    clock_skew: Whole | None = Field(default=None, alias="clockSkew")
    """Seconds that clocks may differ."""
    resource_url: Word | None = Field(default=None, alias="resourceURL")
    """What a token is asked for."""


class Issuer(KebabSection):
    """authentication.issuer: any identity provider with OpenID Connect. An extension. It takes precedence over AAD."""

    url: IssuerUrl | None = None
    """The issuer as its tokens name it (https), with a closing '/' or without."""
    client_id: Word | None = None
    """The client that tokens have to be made for."""
    client_secret: Hidden | None = None
    """The client's secret for sign-in at the console, if the client has one."""
    username_claim: Word | None = None
    """The claim that is a person's name for as long as they are there; `sub`, with AAD `oid`."""
    groups_claim: Word = "groups"
    """The claim with the names of a person's groups."""
    ca_file: CertificateFile | None = None
    """File (PEM) on the controller host with the authorities that signed its certificate; instead of the system's."""


class Authentication(Service):
    """authentication: people, groups and where they log in."""

    @model_validator(mode="before")
    @classmethod
    def has_directory(cls, data: object, info: ValidationInfo) -> object:
        """Warns of settings that OpenPAI needs for an identity provider and this version does not."""
        asked = isinstance(data, Entries) and str(data.get("OIDC")).strip().lower() == "true"
        if isinstance(data, Entries) and asked and data.get("OIDC-type") == "AAD" and "issuer" not in data:
            tell_missing(data.get("AAD", data), info, "tenantID", "clientSecret")
        return data

    oidc: Flag = Field(default=False, alias="OIDC")
    """Whether people may log in at a directory (OpenID Connect), beside those that `user add` made."""
    oidc_type: Word | None = Field(default=None, alias="OIDC-type")
    """Kind of the directory: AAD."""
    aad: Aad | None = Field(default=None, alias="AAD")
    """The application in Azure Active Directory."""
    issuer: Issuer | None = None
    """Any other directory, or what AAD leaves open."""
    group_manager: GroupManager | None = None
    """Groups and what they may use."""
