"""Settings: the command line. Each field of Settings is an option, such as --open-port."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TYPES = {"int": int, "float": float, "str": str, "Path": Path}


@dataclass(frozen=True)
class Settings:
    """wanted: HiveD's configuration in the ConfigMap. used: HiveD's copy of it. record: ConfigMap of the last good one.

    extender_port, hived_port: on loopback. open_port: for probes and metrics. token, authority: files.
    plain_api: the API server has no TLS, in tests. delay_s: lag of HiveD's informer behind kube-scheduler's.
    eviction_wait_s: how long kube-scheduler waits for an eviction.
    """

    wanted: Path
    used: Path
    namespace: str
    record: str
    extender_port: int = 9196
    open_port: int = 9195
    hived_port: int = 9096
    api_host: str = os.environ.get("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    api_port: int = int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
    token: Path = _ACCOUNT / "token"
    authority: Path = _ACCOUNT / "ca.crt"
    plain_api: bool = False
    delay_s: float = 0.05
    hived_timeout_s: float = 3.0
    api_timeout_s: float = 3.0
    eviction_wait_s: float = 3.0

    @property
    def api_url(self) -> str:
        """The URL of the API server."""
        host = f"[{self.api_host}]" if ":" in self.api_host else self.api_host
        return f"{'http' if self.plain_api else 'https'}://{host}:{self.api_port}"


def parse(words: Sequence[str]) -> Settings:
    """Ends the process with status 2 and the usage for wrong options."""
    parser = argparse.ArgumentParser(prog="hived_bridge", description="Bridge between kube-scheduler and HiveD")
    for field in fields(Settings):
        option = f"--{field.name.replace('_', '-')}"
        if field.type == "bool":
            parser.add_argument(option, action="store_true")
        else:
            required = field.default is MISSING
            parser.add_argument(option, type=_TYPES[str(field.type)], default=field.default, required=required)
    return Settings(**vars(parser.parse_args(words)))
