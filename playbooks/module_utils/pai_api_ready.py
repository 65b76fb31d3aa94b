"""Whether a Kubernetes API says that it is ready, before anybody has a login there."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request


def readiness(url: str) -> tuple[bool, str]:
    """Returns whether the API server is ready, and its answer (empty without one)."""
    # Who answers is not the question here: no secret is sent, and a join checks the authority by its digest.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=5) as answer:
            return True, str(answer.status)
    except urllib.error.HTTPError as error:
        return False, f"{error.code} {error.reason}: {error.read(500).decode(errors='replace').strip()}"
    except OSError:
        return False, ""
