"""Certificates of a site: PEM files on the controller host, read with the site."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from pai_install.documents.document import Document
from pai_install.documents.problem import short
from pai_install.documents.scalars import invalid, read_text
from pai_install.site.secret import site_path

_MAX_BYTES = 1024 * 1024
_MIN_RSA_BITS = 2048
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


@dataclass(frozen=True, slots=True)
class ServedCertificate:
    """The first certificate of a file, which a server shows. begin, end: of its validity."""

    begin: datetime
    end: datetime
    names: frozenset[str]
    addresses: frozenset[str]

    def covers(self, name: str) -> bool:
        """Whether clients take it for a host name or an address."""
        try:
            return str(ip_address(name)) in self.addresses
        except ValueError:
            return bool(self.names & {name, f"*.{name.partition('.')[2]}"})


def served_certificate(certificates: str) -> ServedCertificate:
    """Reads the first certificate. Raises ValueError for a malformed one, which OpenSSL alone accepts."""
    from cryptography import x509  # noqa: PLC0415 - slow to load, as in the next function

    try:
        found = x509.load_pem_x509_certificate(certificates.encode())
        kinds = [one.value for one in found.extensions if isinstance(one.value, x509.SubjectAlternativeName)]
    except (x509.InvalidVersion, x509.DuplicateExtension) as error:
        raise ValueError(str(error)) from error
    names = {name.lower() for kind in kinds for name in kind.get_values_for_type(x509.DNSName)}
    addresses = {str(address) for kind in kinds for address in kind.get_values_for_type(x509.IPAddress)}
    return ServedCertificate(
        found.not_valid_before_utc, found.not_valid_after_utc, frozenset(names), frozenset(addresses)
    )


def key_problem(certificates: str, key: str) -> tuple[str, str] | None:
    """Message and remedy where no server can load the key with the first certificate."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        private = load_pem_private_key(key.encode(), None)
    except TypeError:
        return "is encrypted: no one could enter its password", "decrypt it: openssl pkey -in ENCRYPTED -out KEY"
    except (ValueError, UnsupportedAlgorithm):
        return "holds no private key in PEM form", "name a file with -----BEGIN PRIVATE KEY-----"
    if private.public_key() != x509.load_pem_x509_certificate(certificates.encode()).public_key():
        remedy = "name the key of the certificate, and write the certificate first in a file with its chain"
        return "does not belong to the first certificate in console.certificate", remedy
    if isinstance(private, RSAPrivateKey) and private.key_size < _MIN_RSA_BITS:
        return f"has {private.key_size} bits, and TLS needs {_MIN_RSA_BITS}", "make a new key and certificate"
    return None
