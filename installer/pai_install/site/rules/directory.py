"""Rules of the identity provider: settings that break or delay the start of API servers."""

from __future__ import annotations

from pydantic_core import PydanticCustomError

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath
from pai_install.site.directory import aad_issuer, aad_of
from pai_install.site.services.authentication import Aad, Authentication, Issuer
from pai_install.site.services.model import Services

_SECTION = "authentication"


def check_directory(source: Document, services: Services) -> None:
    """Adds problems for missing settings and settings without effect."""
    section = services.authentication
    if section is None:
        return
    if section.oidc:
        _check_given(source, section)
    elif section.issuer is not None:
        path, remedy = (_SECTION, "issuer"), "add OIDC: true beside it, or remove it"
        source.add(path, "site.no-effect", "has no effect without OIDC", remedy, severity="warning")


def _check_given(source: Document, settings: Authentication) -> None:
    given, aad = settings.issuer, aad_of(settings)
    if given is None and aad is None:
        remedy = "write the section issuer, or OIDC-type: AAD and the section AAD"
        source.add((_SECTION, "OIDC"), "site.missing", "names no identity provider", remedy)
        return
    if given is None or given.url is None:
        _check_issuer(source, aad)
    if not (given or Issuer()).client_id and not (aad and aad.client_id):
        section, key = ("issuer", "client-id") if aad is None else ("AAD", "clientID")
        source.add((_SECTION, section), "site.missing", f"needs {key}: for whom tokens are made", "add it")


def _check_issuer(source: Document, aad: Aad | None) -> None:
    if aad is None:
        source.add((_SECTION, "issuer"), "site.missing", "needs url: whose tokens count", "add it")
        return
    try:
        aad_issuer(aad)
    except PydanticCustomError as error:
        words = error.context or {}
        source.add(_place(source, aad), error.type, str(words.get("message", "")), str(words.get("remedy", "")))


def _place(source: Document, aad: Aad) -> YamlPath:
    """The key that says it: the ID where the address leaves that open."""
    url = aad.well_known_url
    key = "wellKnownURL" if url and ("{tenantID}" not in url or not aad.tenant_id) else "tenantID"
    path = (_SECTION, "AAD", key)
    return path if path in source.marks else path[:2]
