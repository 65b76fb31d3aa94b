"""A certificate authority of a test run, and what it signs."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_BEGIN = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_END = dt.datetime(2120, 1, 1, tzinfo=dt.UTC)


class Authority:
    """Signs certificates of servers; `pem` is its own certificate."""

    def __init__(self, name: str, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._builder(self._name, self._key).add_extension(constraint, critical=True)
        self._certificate = certificate.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def serve(self, names: Iterable[str]) -> ssl.SSLContext:
        """What a server with these host names and addresses answers with."""
        key, wanted = ec.generate_private_key(ec.SECP256R1()), list(names)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stand-in")])
        alternative = x509.SubjectAlternativeName([_name_of(name) for name in wanted])
        signed = self._builder(subject, key).add_extension(alternative, critical=False).sign(self._key, hashes.SHA256())
        encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        file = self._folder / f"{wanted[0]}.pem"
        file.write_bytes(
            key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain) + signed.public_bytes(encoding)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_BEGIN)
            .not_valid_after(_END)
        )


def _name_of(word: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(word))
    except ValueError:
        return x509.DNSName(word)
