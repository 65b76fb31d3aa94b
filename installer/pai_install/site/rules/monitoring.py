"""Rules of monitoring: keys of OpenPAI's sections that have another meaning or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath
from pai_install.ports import ALERTMANAGER_PORT, PROMETHEUS_PORT
from pai_install.site.model import Site
from pai_install.site.rules.problems import Wrong, add_problems

# action of OpenPAI -> what to do instead
_ACTIONS = {
    "email-user": "remove it: mails go to admin-receiver",
    "stop-jobs": "write jobs: {idle: ...}, which ends jobs with idle GPUs",
    "tag-jobs": "remove it",
    "cordon-nodes": "run pai-install health --act cordon with a timer",
    "fix-nvidia-gpu-low-perf": "remove it: the alert NodeGpuLowPerfState names the GPU",
}
_REMOVE = "remove it"


def check_monitoring(source: Document, site: Site) -> None:
    """Adds a warning for each of these keys, of a site with monitoring."""
    if site.services.monitoring is not None:
        add_problems(source, (*_listening(site), *_reports(site), *_routes(site)))


def _no_effect(path: YamlPath, why: str, remedy: str) -> Wrong:
    return Wrong(path, "no-effect", f"has no effect: {why}", remedy, "warning")


def _listening(site: Site) -> Iterator[Wrong]:
    services = site.services
    for name, section, port in (
        ("prometheus", services.prometheus, PROMETHEUS_PORT),
        ("alert-manager", services.alert_manager, ALERTMANAGER_PORT),
    ):
        if section is not None and section.port != port:
            yield _no_effect((name, "port"), f"it listens on port {port} of the loopback", _REMOVE)


def _reports(site: Site) -> Iterator[Wrong]:
    section = site.services.alert_manager
    if section is None:
        return
    if section.cluster_utilization is not None and section.cluster_utilization.schedule is not None:
        remedy = "run pai-install usage"
        yield _no_effect(("alert-manager", "cluster-utilization"), "no report is sent by mail", remedy)
    if section.job_status_change_notification is not None and section.job_status_change_notification.enable:
        path: YamlPath = ("alert-manager", "job-status-change-notification")
        yield _no_effect(path, "users get no mails about their jobs", _REMOVE)
    checker = section.cert_expiration_checker
    if checker is not None and checker.alert_residual_days is not None:
        remedy = f"write monitoring: {{thresholds: {{certificate-warn-days: {checker.alert_residual_days}}}}}"
        path = ("alert-manager", "cert-expiration-checker", "alert-residual-days")
        yield _no_effect(path, "a threshold of monitoring decides", remedy)


def _routes(site: Site) -> Iterator[Wrong]:
    section = site.services.alert_manager
    if section is None:
        return
    if section.customized_routes is not None and section.customized_routes.routes:
        path: YamlPath = ("alert-manager", "customized-routes")
        yield _no_effect(path, "every alert goes to all receivers", "write monitoring: {web-hooks: [...]}")
    for number, receiver in enumerate(section.customized_receivers):
        actions = receiver.actions if isinstance(receiver.actions, Mapping) else {}
        for name in sorted(actions.keys() & _ACTIONS.keys()):
            path = ("alert-manager", "customized-receivers", number, "actions", name)
            yield _no_effect(path, "alerts start no action", _ACTIONS[name])
