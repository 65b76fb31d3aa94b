"""Filter for the environment of services behind a proxy: pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAMES = {"http": "HTTP_PROXY", "https": "HTTPS_PROXY", "no_proxy": "NO_PROXY"}


def proxy_environment(proxy: Mapping[str, str]) -> str:
    """A file for systemd's EnvironmentFile=. proxy: http, https, no_proxy; empty ones are left out.

    Quoted as systemd.exec(5) says: nothing in a value ends it, and nothing in it is expanded.
    """
    lines = [f'{_NAMES[name]}="{_escaped(value)}"' for name, value in proxy.items() if value]
    return "\n".join(["# Managed by pai-install: changes are overwritten.", *lines, ""])


def _escaped(value: str) -> str:
    return re.sub(r'(["\\$`])', r"\\\1", value)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Any]:
        """Filter name -> function."""
        return {"proxy_environment": proxy_environment}
