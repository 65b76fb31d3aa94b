"""Values of the add-on logs: the store on a control plane, and a collector on each machine. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.parts.context import Context
from pai_install.ports import LOG_COLLECTOR_PORT, LOG_STORE_PORT
from pai_install.registry.compile import COLLECTOR_NAME, LOGS_NAME
from pai_install.registry.identity import Identity, Serving
from pai_install.site import Site
from pai_install.site.services.logs import Logs

FOLDER = "/var/lib/pai-install/logs"
BUFFER = "/var/lib/pai-install/log-collector"
# Parts of the disk that machines send in an hour, compressed: all together, and one of them. The store keeps the last
# two days whatever their size, so 48 hours must fit. The share of one machine leaves the logs of others their days.
_ALL_PER_HOUR, _ONE_PER_HOUR = 50, 200
_MINUTES = 60
_LEAST = 16 * 1024


def has_logs(site: Site) -> bool:
    """Whether the site stores the logs of its pods."""
    return site.services.logs is not None


def log_values(context: Context) -> dict[str, Any]:
    """Returns the values of the pods. front: limits of what machines send. server, client: certificates with keys."""
    wanted, identity = context.site.services.logs or Logs(), context.identity
    return {
        "leader": context.leader.hostname,
        "folder": FOLDER,
        "buffer": BUFFER,
        "port": LOG_STORE_PORT,
        "collector_port": LOG_COLLECTOR_PORT,
        "days": wanted.retention,
        "disk": wanted.disk,
        "front": {
            "client": COLLECTOR_NAME,
            "server": LOGS_NAME,
            "all_per_minute": max(_LEAST, wanted.disk // _ALL_PER_HOUR // _MINUTES),
            "one_per_minute": max(_LEAST, wanted.disk // _ONE_PER_HOUR // _MINUTES),
        },
        "server": {"secret_data": _files(identity, identity.logs if identity else None)},
        "client": {"secret_data": _files(identity, identity.collector if identity else None)},
    }


def _files(identity: Identity | None, serving: Serving | None) -> dict[str, str]:
    """Certificate and key in one file, and the authorities of the other side. Empty before the first run."""
    chain = serving.chain if serving is not None else ""
    return {"tls.pem": chain, "ca.crt": identity.bundle if identity is not None else ""}
