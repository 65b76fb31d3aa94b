"""The gossip of Alertmanagers: files of its mutual TLS. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pai_install.registry.compile import ALERTMANAGER_NAME
from pai_install.registry.identity import Identity

TLS_FILE = "gossip.yml"
_CERTIFICATE, _AUTHORITIES = "gossip.pem", "gossip-ca.crt"


def gossip_files(identity: Identity | None) -> Mapping[str, str]:
    """Returns name -> content of the files of one folder. Empty ones before the first run.

    A member can silence alerts, so the site's authority alone is not enough: it signs certificates of workers, too.
    """
    own = identity.alertmanager if identity is not None else None
    pair = {"cert_file": _CERTIFICATE, "key_file": _CERTIFICATE, "min_version": "TLS13"}
    server = {"client_ca_file": _AUTHORITIES, "client_auth_type": "RequireAndVerifyClientCert"}
    tls = {
        "tls_server_config": {**pair, **server, "client_allowed_sans": [ALERTMANAGER_NAME]},
        "tls_client_config": {**pair, "ca_file": _AUTHORITIES, "server_name": ALERTMANAGER_NAME},
    }
    return {
        TLS_FILE: json.dumps(tls, indent=1),
        _CERTIFICATE: own.chain if own is not None else "",
        _AUTHORITIES: identity.bundle if identity is not None else "",
    }
