"""The certificates of a site on the controller host: the kubeconfig, and the identity of registries."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterator

from pai_install.errors import PaiError
from pai_install.plan.certificates import KUBECONFIG
from pai_install.plan.observed import Certificate
from pai_install.registry.certificates import expires
from pai_install.registry.identity import read_identity
from pai_install.run.state import StateFolder
from pai_install.system.plain import one_line

_LONGEST = 253
_REGISTRY = ".pai/registry.json"
_EMBEDDED = re.compile(r"client-certificate-data:\s*(\S+)")
_SERVER = re.compile(r"server:\s*https://([^:/\s]+):")


def box_certificates(state: StateFolder, planes: Collection[str]) -> tuple[Certificate, ...]:
    """Returns the existing certificates. Invalid ones have a cause. planes: addresses of the control-plane nodes."""
    return (*_kubeconfig(state, planes), *_registry(state))


def _kubeconfig(state: StateFolder, planes: Collection[str]) -> Iterator[Certificate]:
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
    dated = _dated(KUBECONFIG, pem)
    server = _SERVER.search(text)
    # The control plane of a kubeconfig may have left the cluster. The dates of the certificate do not show that.
    if not dated.problem and server and server.group(1) not in planes:
        why = f"it leads to {one_line(server.group(1))[:_LONGEST]}, which is no control plane of this site"
        dated = dated.model_copy(update={"problem": why})
    yield dated


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
    served = {"store": identity.store, "cache": identity.cache, "scheduler": identity.webhook}
    served |= {"console": identity.console, "exporters": identity.exporter, "prometheus": identity.scraper}
    served |= {"log store": identity.logs, "log collectors": identity.collector, "alertmanagers": identity.alertmanager}
    for name, serving in served.items():
        if serving is not None:
            yield _dated(f"{_REGISTRY} {name}", serving.certificate)


def _dated(path: str, pem: str) -> Certificate:
    try:
        return Certificate(path=path, expires=int(expires(pem).timestamp()))
    except ValueError:
        return Certificate(path=path, problem="it holds no certificate")
