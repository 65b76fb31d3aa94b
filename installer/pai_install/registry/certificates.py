"""Authorities and serving certificates as PEM text."""

from __future__ import annotations

import hashlib
import ipaddress
import ssl
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:  # slow to load: most verbs never need it
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

Use = Literal["server", "client", "peer"]
_AUTHORITY_LIFE = timedelta(days=3650)
_SERVING_LIFE = timedelta(days=397)  # clients take no longer one
_END = "-----END CERTIFICATE-----"
_CLOCK_SKEW = timedelta(hours=24)  # a machine's clock may be late when it is set up


def make_authority(name: str, now: datetime) -> tuple[str, str]:
    """A certificate authority of ten years: its certificate and its key."""
    from cryptography import x509  # noqa: PLC0415

    key = _new_key()
    subject = _subject(name)
    usage = _usage(signs_certificates=True)
    builder = _builder(subject, subject, key, now, _AUTHORITY_LIFE)
    # The authority signs certificates of servers and clients, but no further authority.
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return _signed(builder.add_extension(identifier, critical=False), key), _private(key)


def make_serving(
    authority: str, authority_key: str, names: Sequence[str], now: datetime, *, use: Use = "server"
) -> tuple[str, str]:
    """A certificate for names and addresses, signed by the authority: the certificate and its key.

    use: as a server, a client, or both.
    """
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    key = _new_key()
    purposes = x509.oid.ExtendedKeyUsageOID
    server, client = [purposes.SERVER_AUTH], [purposes.CLIENT_AUTH]
    uses = {"server": server, "client": client, "peer": [*server, *client]}
    issuer = x509.load_pem_x509_certificate(authority.encode())
    issuer_key = cast("EllipticCurvePrivateKey", load_pem_private_key(authority_key.encode(), None))
    builder = _builder(_subject(names[0]), issuer.subject, key, now, _SERVING_LIFE)
    extensions: tuple[tuple[x509.ExtensionType, bool], ...] = (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(signs_certificates=False), True),
        (x509.ExtendedKeyUsage(uses[use]), False),
        (x509.SubjectAlternativeName([_general_name(name) for name in names]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False),
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return _signed(builder, issuer_key), _private(key)


def expires(certificate: str) -> datetime:
    """Returns the expiry of a certificate in UTC. Raises ValueError for other data."""
    from cryptography import x509  # noqa: PLC0415

    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc


def fingerprint(certificate: str) -> str:
    """The SHA-256 fingerprint of the first certificate of a chain, as browsers and openssl show it."""
    first = certificate.partition(_END)[0] + _END
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first.strip())).hexdigest().upper()
    return ":".join(digest[place : place + 2] for place in range(0, len(digest), 2))


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    return ec.generate_private_key(ec.SECP256R1())


def _subject(name: str) -> x509.Name:
    from cryptography import x509  # noqa: PLC0415

    # X.509 limits a common name to 64 characters. Clients check the alternative names.
    return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name[:64])])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    from cryptography import x509  # noqa: PLC0415

    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _CLOCK_SKEW,
        not_valid_after=now + life,
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509  # noqa: PLC0415

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


def _private(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415

    data = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return data.decode()
