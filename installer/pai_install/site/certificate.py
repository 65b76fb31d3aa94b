"""Certificates of a site: PEM files on the controller host, read with the site."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from pai_install.documents.document import Document
from pai_install.documents.problem import short
from pai_install.documents.scalars import invalid, read_text
from pai_install.site.secret import site_path

_MAX_BYTES = 1024 * 1024
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_REMEDY = "name a file with -----BEGIN CERTIFICATE----- on the controller host"


def read_certificates(value: object, info: ValidationInfo) -> str:
    """Returns the certificates of a file as PEM, without its other content. PEM text stays unchanged."""
    word = str(value)
    if not _CERTIFICATE.search(word):
        folder = info.context.folder if isinstance(info.context, Document) else Path()
        word = _content(read_text(value), folder)
    found = _CERTIFICATE.findall(word)
    if not found or not all(_is_certificate(text) for text in found):
        raise invalid("certificate", "holds no certificate in PEM form", _REMEDY)
    return "".join(f"{text}\n" for text in found)


def _content(name: str, folder: Path) -> str:
    try:
        with site_path(name, folder).open("rb") as handle:
            return handle.read(_MAX_BYTES).decode(errors="replace")
    except (OSError, ValueError, RuntimeError) as error:
        message = f"{short(name)} cannot be read: {type(error).__name__}"
        raise invalid("certificate", message, _REMEDY) from None


def _is_certificate(text: str) -> bool:
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        return False
    return True


CertificateFile = Annotated[str, BeforeValidator(read_certificates), WithJsonSchema({"type": "string"})]
"""The certificates of a file, as PEM text. A relative path starts at the site's folder."""
