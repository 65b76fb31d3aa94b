"""The directory at which people log in (OpenID Connect), from OpenPAI's section AAD and from ours. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import SecretStr

from pai_install.documents.scalars import invalid, shown
from pai_install.site.names import read_issuer
from pai_install.site.services.authentication import Aad, Authentication, Issuer
from pai_install.site.services.model import Services

_AAD = "https://login.microsoftonline.com/{tenantID}/v2.0/.well-known/openid-configuration"
_WELL_KNOWN = re.compile(r"(https://[^/]+/)([^/]+)(/v2\.0)/\.well-known/openid-configuration")
_TENANT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Directory:
    """An identity provider with tokens that the API server accepts.

    issuer, client: `iss` and `aud` of its tokens. username, groups: claims. authority: PEM, empty for the system's.
    client_secret: of the client for sign-in at the console, or None.
    """

    issuer: str
    client: str
    username: str
    groups: str
    authority: str = ""
    client_secret: SecretStr | None = None


def directory_of(services: Services) -> Directory | None:
    """Returns the identity provider of a valid site, or None."""
    section = services.authentication
    if section is None or not section.oidc:
        return None
    given, aad = section.issuer or Issuer(), aad_of(section)
    issuer = given.url or (aad_issuer(aad) if aad else None)
    client = given.client_id or (aad.client_id if aad else None)
    if not issuer or not client:
        return None
    username = given.username_claim or ("oid" if aad else "sub")
    secret = given.client_secret or (aad.client_secret if aad and not given.client_id else None)
    return Directory(issuer, client, username, given.groups_claim, given.ca_file or "", secret)


def aad_of(section: Authentication) -> Aad | None:
    """The application in Azure Active Directory, where people log in there."""
    return (section.aad or Aad()) if section.oidc_type == "AAD" else None


def aad_issuer(aad: Aad) -> str:
    """Returns the issuer that is described at wellKnownURL. Raises PydanticCustomError if it cannot be derived."""
    url = (aad.well_known_url or _AAD).replace("{tenantID}", aad.tenant_id or "{tenantID}")
    parts = _WELL_KNOWN.fullmatch(url)
    if parts is None:
        message = f"{shown(url)} is not where version 2.0 of a directory describes itself"
        raise invalid("issuer", message, f"write {_AAD}, or the section issuer")
    host, tenant, version = parts.groups()
    if not _TENANT.fullmatch(tenant.lower()):
        message = f"{shown(tenant)} is not the ID of one directory, by which its tokens name it"
        raise invalid("issuer", message, "write the directory (tenant) ID of the portal, in tenantID")
    return read_issuer(f"{host}{tenant.lower()}{version}")
