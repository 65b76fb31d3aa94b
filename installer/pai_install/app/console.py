"""Use case: addresses of the console, and the certificate that people compare at their first visit."""

from __future__ import annotations

from pai_install.app.base import AppContext
from pai_install.registry.certificates import fingerprint
from pai_install.registry.identity import read_identity
from pai_install.report.site_status import ConsoleAccess
from pai_install.site.console import addresses, console_of


def console_access(app: AppContext) -> ConsoleAccess | None:
    """Addresses and fingerprint, None for a site without a console. A site before its first run has no fingerprint.

    Raises PaiError for a damaged file of certificates.
    """
    console = console_of(app.site)
    if console is None:
        return None
    identity = read_identity(app.state.registry)
    served = identity.console.certificate if identity and identity.console else ""
    certificate = console.certificate or served
    return ConsoleAccess(addresses(app.site), fingerprint(certificate) if certificate else "")
