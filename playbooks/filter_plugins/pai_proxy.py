"""Filter for the environment of services behind a proxy: pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAMES = {"http": "HTTP_PROXY", "https": "HTTPS_PROXY", "no_proxy": "NO_PROXY"}


def proxy_environment(proxy: Mapping[str, str]) -> str:
    """Returns a file for systemd's EnvironmentFile=. proxy: http, https, no_proxy. Empty ones are omitted.

    The quotes follow systemd.exec(5): no value can end them, and no value is expanded.
    """
    lines = [f'{_NAMES[name]}="{_escaped(value)}"' for name, value in proxy.items() if value]
    return "\n".join(["# Managed by pai-install: changes are overwritten.", *lines, ""])


def _escaped(value: str) -> str:
    return re.sub(r'(["\\$`])', r"\\\1", value)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Any]:
        """Filter name -> function."""
        return {"proxy_environment": proxy_environment}
