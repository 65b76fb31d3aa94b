"""Settings: the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Settings:
    """Ports, places and seconds; `parse` says which."""

    extender_port: int
    open_port: int
    hived_port: int
    api_host: str
    api_port: int
    token: Path
    authority: Path | None
    delay_s: float
    hived_timeout_s: float
    api_timeout_s: float
    eviction_wait_s: float
    wanted: Path
    used: Path
    namespace: str
    record: str

    @property
    def api_url(self) -> str:
        """The URL of the API server."""
        host = f"[{self.api_host}]" if ":" in self.api_host else self.api_host
        return f"{'https' if self.authority else 'http'}://{host}:{self.api_port}"


def parse(words: Sequence[str]) -> Settings:
    """Ends the process with status 2 and the usage for words that are wrong."""
    parser = argparse.ArgumentParser(prog="hived_bridge", description="Between kube-scheduler and HiveD")
    option = parser.add_argument
    option("--extender-port", type=int, default=9196, help="kube-scheduler's calls, on loopback only")
    option("--open-port", type=int, default=9195, help="/livez /healthz /readyz /metrics")
    option("--hived-port", type=int, default=9096, help="HiveD, on loopback")
    option("--api-host", default=os.environ.get("KUBERNETES_SERVICE_HOST", "127.0.0.1"))
    option("--api-port", type=int, default=int(os.environ.get("KUBERNETES_SERVICE_PORT", "443")))
    option("--token", type=Path, default=_ACCOUNT / "token", help="file of the service account's token")
    option("--authority", type=Path, default=_ACCOUNT / "ca.crt", help="PEM file of the API server's authority")
    option(
        "--plain-api", dest="authority", action="store_const", const=None, help="an API server without TLS: for tests"
    )
    option("--delay-s", type=float, default=0.05, help="how far HiveD's informer may be behind kube-scheduler's")
    option("--hived-timeout-s", type=float, default=3.0)
    option("--api-timeout-s", type=float, default=3.0)
    option("--eviction-wait-s", type=float, default=3.0, help="how long kube-scheduler waits for an eviction")
    option("--wanted", type=Path, required=True, help="HiveD's configuration as the ConfigMap has it")
    option("--used", type=Path, required=True, help="HiveD's configuration as HiveD reads it")
    option("--namespace", required=True, help="of the bridge")
    option("--record", required=True, help="ConfigMap that keeps the last good configuration")
    return Settings(**vars(parser.parse_args(words)))
