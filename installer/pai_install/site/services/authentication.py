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
    report_missing,
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
    """Whether members administer the cluster."""
    virtual_clusters: Words = Field(default=(), alias="virtualClusters")
    """Virtual clusters for jobs of the group."""
    storage_configs: Words = Field(default=(), alias="storageConfigs")
    """Storages for jobs of the group."""


class Extension(Section):
    """OpenPAI's additional data of a group."""

    acls: Acls = Acls()
    """Granted virtual clusters and storages."""


class Group(Section):
    """A group of people."""

    @model_validator(mode="before")
    @classmethod
    def has_name(cls, data: object, info: ValidationInfo) -> object:
        """Warns of a group without a name."""
        report_missing(data, info, "groupname")
        return data

    groupname: GroupName | None = None
    """Name of letters, digits, and '_'."""
    description: Word | None = None
    """Free text."""
    external_name: Word | None = Field(default=None, alias="externalName")
    """Name in the tokens of the identity provider."""
    extension: Extension = Extension()
    """Grants of the group."""


class GroupManager(KebabSection):
    """authentication.group-manager."""

    @model_validator(mode="before")
    @classmethod
    def has_groups(cls, data: object, info: ValidationInfo) -> object:
        """Warns of the two groups that OpenPAI always makes: with this section, it took none from its defaults."""
        report_missing(data, info, "admin-group", "default-group")
        return data

    group_data_source: DataSource = "basic"
    """Source of members: basic, winbind, or ms-graph."""
    winbind_server_address: Word | None = None
    """Server of winbind."""
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
    """Address of the discovery document. {tenantID} is replaced."""
    tenant_id: Word | None = Field(default=None, alias="tenantID")
    """Tenant."""
    client_id: Word | None = Field(default=None, alias="clientID")
    """The application."""
    client_secret: Hidden | None = Field(default=None, alias="clientSecret")
    """The application's secret, for sign-in at the console. API servers need none."""
    nonce_lifetime: Whole | None = Field(default=None, alias="nonceLifetime")
    """Maximum duration of a sign-in, in seconds."""
    nonce_max_amount: Whole | None = Field(default=None, alias="nonceMaxAmount")
    """Maximum number of concurrent sign-ins."""
    clock_skew: Whole | None = Field(default=None, alias="clockSkew")
    """Maximum difference of clocks, in seconds."""
    resource_url: Word | None = Field(default=None, alias="resourceURL")
    """Audience of tokens."""


class Issuer(KebabSection):
    """authentication.issuer: any identity provider with OpenID Connect. An extension. It takes precedence over AAD."""

    url: IssuerUrl | None = None
    """Issuer in its tokens (https). A trailing '/' is optional."""
    client_id: Word | None = None
    """Client ID, the audience of tokens."""
    client_secret: Hidden | None = None
    """The client's secret for sign-in at the console, if the client has one."""
    username_claim: Word | None = None
    """Claim with a permanent user name. [default: `sub`, or `oid` with AAD]"""
    groups_claim: Word = "groups"
    """Claim with the names of a user's groups."""
    ca_file: CertificateFile | None = None
    """PEM file on the controller host with the authorities of its certificate, which replace those of the system."""


class Authentication(Service):
    """authentication: people, groups and where they log in."""

    @model_validator(mode="before")
    @classmethod
    def has_directory(cls, data: object, info: ValidationInfo) -> object:
        """Warns of settings that OpenPAI needs for an identity provider and this version does not."""
        oidc = isinstance(data, Entries) and str(data.get("OIDC")).strip().lower() == "true"
        if isinstance(data, Entries) and oidc and data.get("OIDC-type") == "AAD" and "issuer" not in data:
            report_missing(data.get("AAD", data), info, "tenantID", "clientSecret")
        return data

    oidc: Flag = Field(default=False, alias="OIDC")
    """Accept users of an identity provider (OpenID Connect), in addition to those of `user add`."""
    oidc_type: Word | None = Field(default=None, alias="OIDC-type")
    """Type of the identity provider: AAD."""
    aad: Aad | None = Field(default=None, alias="AAD")
    """The application in Azure Active Directory."""
    issuer: Issuer | None = None
    """Another identity provider, or settings that AAD lacks."""
    group_manager: GroupManager | None = None
    """Groups and their grants."""
