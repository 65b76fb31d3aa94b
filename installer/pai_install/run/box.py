"""The certificates that the dev box keeps of a site: the kubeconfig, and what registries are known by."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from pai_install.cluster.certificates import KUBECONFIG
from pai_install.errors import PaiError
from pai_install.plan.observed import Certificate
from pai_install.registry.certificates import expires
from pai_install.registry.identity import read_identity
from pai_install.run.state import StateFolder

_REGISTRY = ".pai/registry.json"
_EMBEDDED = re.compile(r"client-certificate-data:\s*(\S+)")


def box_certificates(state: StateFolder) -> tuple[Certificate, ...]:
    """Those that there are; what cannot be read says why."""
    return (*_kubeconfig(state), *_registry(state))


def _kubeconfig(state: StateFolder) -> Iterator[Certificate]:
    try:
        text = (state.path / "kubeconfig").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        yield Certificate(path=KUBECONFIG, problem=error.strerror or "it cannot be read")
        return
    found = _EMBEDDED.search(text)
    try:
        pem = base64.b64decode(found.group(1), validate=True).decode() if found else ""
    except (binascii.Error, ValueError):
        pem = ""
    yield _dated(KUBECONFIG, pem)


def _registry(state: StateFolder) -> Iterator[Certificate]:
    try:
        identity = read_identity(state.registry)
    except (PaiError, OSError) as error:
        yield Certificate(path=_REGISTRY, problem=str(error))
        return
    if identity is None:
        return
    for authority in identity.authorities:
        yield _dated(f"{_REGISTRY} authority {authority.generation}", authority.certificate)
    for name, serving in (("store", identity.store), ("cache", identity.cache), ("scheduler", identity.webhook)):
        if serving is not None:
            yield _dated(f"{_REGISTRY} {name}", serving.certificate)


def _dated(path: str, pem: str) -> Certificate:
    try:
        return Certificate(path=path, expires=int(expires(pem).timestamp()))
    except ValueError:
        return Certificate(path=path, problem="it holds no certificate")
