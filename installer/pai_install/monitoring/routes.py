"""Whom Alertmanager tells of which alert. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.site import Site

SECRETS = "/etc/alertmanager-secrets"
_NOBODY, _EVERYBODY = "nobody", "everybody"
_REPEAT = "24h"


@dataclass(frozen=True, slots=True)
class Routing:
    """The configuration of Alertmanager, and the secrets that it names as files: name -> content."""

    configuration: Mapping[str, Any]
    secrets: Mapping[str, str]


def routing_of(site: Site) -> Routing:
    """Returns the routing of a site. Raises PaiError where a secret is unavailable here."""
    wanted = site.services.monitoring
    hooks = wanted.web_hooks if wanted else ()
    secrets: dict[str, str] = {}
    configs = []
    for number, hook in enumerate(hooks):
        secrets[f"hook-{number}"] = hook.url.get_secret_value()
        config: dict[str, Any] = {"url_file": f"{SECRETS}/hook-{number}", "send_resolved": True}
        if hook.token is not None:
            secrets[f"hook-{number}-token"] = hook.token.get_secret_value()
            credentials = {"type": "Bearer", "credentials_file": f"{SECRETS}/hook-{number}-token"}
            config["http_config"] = {"authorization": credentials}
        configs.append(config)
    return Routing(_configuration({"webhook_configs": configs}), secrets)


def _configuration(everybody: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "route": {
            "receiver": _EVERYBODY,
            # a failed rack is one message
            "group_by": ["alertname"],
            "group_wait": "10s",
            "group_interval": "1m",
            "repeat_interval": _REPEAT,
            "routes": [
                {"receiver": _NOBODY, "matchers": ['severity=~"none|info"']},
                {"receiver": _EVERYBODY, "matchers": ['severity="warn"'], "group_wait": "1m", "group_interval": "5m"},
            ],
        },
        "inhibit_rules": [
            {
                "source_matchers": ['alertname="MachineDown"'],
                "target_matchers": ['alertname!="MachineDown"', 'node!=""'],
                "equal": ["node"],
            },
            {
                "source_matchers": ['alertname="NodeInMaintenance"'],
                "target_matchers": ['hardware!="true"', 'node!=""', 'alertname!="NodeInMaintenance"'],
                "equal": ["node"],
            },
        ],
        "receivers": [{"name": _NOBODY}, {"name": _EVERYBODY, **everybody}],
    }
