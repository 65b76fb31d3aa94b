"""Whom Alertmanager tells of which alert. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.site import Site
from pai_install.site.services.monitoring import EmailConfigs
from pai_install.site.services.own_monitoring import WebHook

SECRETS = "/etc/alertmanager-secrets"
_NOBODY, _EVERYBODY = "nobody", "everybody"
_REPEAT = "24h"
_SUBMISSION, _PLAIN = 587, 25
_SUBJECT = "[{{ .Status | toUpper }}] {{ .GroupLabels.alertname }} ({{ .Alerts | len }})"
_TEXT = (
    "{{ range .Alerts }}{{ .Status }}: {{ .Annotations.summary }}\n"
    "action: {{ .Annotations.action }}\n"
    # rules of a site may have none
    "{{ with .Annotations.docs }}documentation: {{ . }}\n{{ end }}"
    "since: {{ .StartsAt }}\n\n{{ end }}"
)
_OF_PODS = 'alertname=~"PodOfSystemNotReady|PaiServicePodNotRunning"'
_OF_KUBELET = 'alertname=~"NodeNotReady|NodeUnreachable|NodeFlapping|PodOfSystemNotReady|PaiServicePodNotRunning"'
# matchers of a cause -> of the alerts of its node that say nothing new
_INHIBITIONS: Sequence[tuple[Sequence[str], Sequence[str]]] = (
    (['alertname="MachineDown"'], ['alertname!="MachineDown"']),
    (['alertname="NodeInMaintenance"'], ['alertname!="NodeInMaintenance"', 'hardware!="true"']),
    (['alertname=~"KubeletDown|k8sDockerDaemonNotOk"'], [_OF_KUBELET]),
    (['alertname=~"NodeNotReady|NodeUnreachable"'], [_OF_PODS]),
)


@dataclass(frozen=True, slots=True)
class Routing:
    """The configuration of Alertmanager, and the secrets that it names as files: name -> content."""

    configuration: Mapping[str, Any]
    secrets: Mapping[str, str]


def routing_of(site: Site) -> Routing:
    """Returns the routing of a site. Raises PaiError where a secret is unavailable here."""
    wanted = site.services.monitoring
    hooks, mail = _hooks(wanted.web_hooks if wanted else ()), _mail(site)
    all_routes = {"webhook_configs": hooks.configuration["hooks"], "email_configs": mail.configuration["mails"]}
    return Routing(_configuration(site, all_routes), {**hooks.secrets, **mail.secrets})


def _hooks(wanted: Sequence[WebHook]) -> Routing:
    secrets: dict[str, str] = {}
    configs = []
    for number, hook in enumerate(wanted):
        secrets[f"hook-{number}"] = hook.url.get_secret_value()
        # Addresses of web hooks often contain a token, so they are files and not in the configuration.
        config: dict[str, Any] = {"url_file": f"{SECRETS}/hook-{number}", "send_resolved": True}
        if hook.token is not None:
            secrets[f"hook-{number}-token"] = hook.token.get_secret_value()
            credentials = {"type": "Bearer", "credentials_file": f"{SECRETS}/hook-{number}-token"}
            config["http_config"] = {"authorization": credentials}
        configs.append(config)
    return Routing({"hooks": configs}, secrets)


def mail_of(site: Site) -> EmailConfigs | None:
    """Returns how mails are sent to the administrator, or None for a site that names no server, sender, or receiver."""
    section = site.services.alert_manager
    mail = section.alert_handler.email_configs if section and section.alert_handler else None
    return mail if mail and mail.smtp_host and mail.smtp_from and mail.admin_receiver else None


def _mail(site: Site) -> Routing:
    mail = mail_of(site)
    if mail is None:
        return Routing({"mails": []}, {})
    config: dict[str, Any] = {
        "to": mail.admin_receiver,
        "from": mail.smtp_from,
        "smarthost": f"{mail.smtp_host}:{mail.smtp_port or _SUBMISSION}",
        "send_resolved": True,
        "headers": {"Subject": _SUBJECT},
        "text": _TEXT,
        # a server at the port of old without TLS, as in many sites of OpenPAI
        "require_tls": (mail.smtp_port or _SUBMISSION) != _PLAIN,
    }
    if mail.smtp_auth_username is None or mail.smtp_auth_password is None:
        return Routing({"mails": [config]}, {})
    config["auth_username"] = mail.smtp_auth_username
    config["auth_password_file"] = f"{SECRETS}/mail-password"
    return Routing({"mails": [config]}, {"mail-password": mail.smtp_auth_password.get_secret_value()})


def _configuration(site: Site, all_routes: Mapping[str, Any]) -> dict[str, Any]:
    section = site.services.alert_manager
    repeat = section.repeat_interval if section and section.repeat_interval else _REPEAT
    return {
        "route": {
            "receiver": _EVERYBODY,
            # a failed rack is one message
            "group_by": ["alertname"],
            "group_wait": "10s",
            "group_interval": "1m",
            "repeat_interval": repeat,
            "routes": [
                {"receiver": _NOBODY, "matchers": ['severity=~"none|info"']},
                {"receiver": _EVERYBODY, "matchers": ['severity="warn"'], "group_wait": "1m", "group_interval": "5m"},
            ],
        },
        "inhibit_rules": [_inhibit(*rule) for rule in _INHIBITIONS],
        "receivers": [{"name": _NOBODY}, {"name": _EVERYBODY, **all_routes}],
    }


def _inhibit(sources: Sequence[str], targets: Sequence[str]) -> dict[str, Any]:
    """Returns a rule between alerts of the same node."""
    # Alertmanager takes two missing labels for equal, so alerts without a node would silence each other.
    return {"source_matchers": list(sources), "target_matchers": ['node!=""', *targets], "equal": ["node"]}
