"""Monitoring of the cluster: metrics, alerts, and their receivers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pai_install.site.services.openpai import Service
from pai_install.site.services.own_rules import OwnRules
from pai_install.site.services.section import (
    Count,
    Flag,
    Free,
    Hidden,
    KebabSection,
    ListOf,
    Port,
    Section,
    Whole,
    Word,
    choice,
)


class Prometheus(Service):
    """prometheus: collects metrics."""

    port: Port = 9091
    """Listen port."""
    scrape_interval: Count = Field(default=30, alias="scrape_interval")
    """Seconds between two readings."""
    customized_alerts: OwnRules | None = None
    """Rules of your own: a block of text with `groups`, as in a rule file of Prometheus."""


class Grafana(Service):
    """grafana: shows metrics."""

    port: Port = 3000
    """Listen port."""


class NodeExporter(Service):
    """node-exporter: metrics of each machine."""

    port: Port = 9100
    """Where it listens on each machine."""


class JobExporter(Service):
    """job-exporter: metrics of GPUs and jobs."""

    port: Port = 9102
    """Where it listens on each machine."""
    logging_level: Annotated[str, choice("DEBUG", "INFO", "WARNING")] | None = None
    """DEBUG, INFO or WARNING."""
    interface: Word | None = None
    """Network interfaces to measure, divided by commas."""


class EmailConfigs(KebabSection):
    """alert-manager.alert-handler.email-configs."""

    admin_receiver: Word | None = None
    """Who is told of every alert."""
    smtp_host: Word | None = None
    """Mail server."""
    smtp_port: Port | None = None
    """Port of the mail server."""
    smtp_from: Word | None = None
    """Sender of the mails."""
    smtp_auth_username: Word | None = None
    """Account at the mail server."""
    smtp_auth_password: Hidden | None = None
    """Password of that account."""


class AlertHandler(KebabSection):
    """alert-manager.alert-handler: acts on alerts."""

    port: Port = 9095
    """Listen port."""
    log_level: Word | None = None
    """How much it logs."""
    configured: Flag | None = None
    """Default of OpenPAI, without effect."""
    pai_bearer_token: Hidden | None = None
    """Token for OpenPAI's API, where older versions had it."""
    email_configs: EmailConfigs | None = None
    """How mails are sent."""


class ClusterUtilization(KebabSection):
    """alert-manager.cluster-utilization: a report by mail."""

    configured: Flag | None = None
    """Default of OpenPAI, without effect."""
    schedule: Word | None = None
    """When, as cron writes it."""


class JobStatusChange(KebabSection):
    """alert-manager.job-status-change-notification: mails about a user's jobs."""

    enable: Flag | None = None
    """Whether mails are sent."""
    configured: Flag | None = None
    """Default of OpenPAI, without effect."""
    log_level: Word | None = None
    """How much it logs."""
    db_poller_max_db_connection: Whole | None = None
    """Connections to the database."""
    db_poller_interval_second: Whole | None = None
    """Seconds between two looks."""


class CertExpiration(KebabSection):
    """alert-manager.cert-expiration-checker: warns before certificates end."""

    schedule: Word | None = None
    """When, as cron writes it."""
    alert_residual_days: Whole | None = None
    """Days that a certificate must still be valid."""
    cert_path: Word | None = None
    """Folder of the certificates on the control plane."""


class Receiver(Section):
    """alert-manager.customized-receivers[]: actions under a name."""

    name: Word | None = None
    """Name for routes."""
    actions: Free = None
    """Action -> its parameters."""


class Routes(Section):
    """alert-manager.customized-routes."""

    routes: Annotated[Free, ListOf] = None
    """Routes as Prometheus' alert manager writes them."""


class AlertManager(Service):
    """alert-manager: alerts and their actions."""

    port: Port = 9093
    """Listen port."""
    pai_bearer_token: Hidden | None = None
    """Token for OpenPAI's API."""
    actions_available: Free = None
    """Default of OpenPAI, without effect."""
    alert_handler: AlertHandler | None = None
    """Acts on alerts."""
    cluster_utilization: ClusterUtilization | None = None
    """A report by mail."""
    job_status_change_notification: JobStatusChange | None = None
    """Mails about a user's jobs."""
    cert_expiration_checker: CertExpiration | None = None
    """Warns before certificates end."""
    customized_routes: Routes | None = None
    """Without effect: every alert goes to all receivers."""
    customized_receivers: Annotated[tuple[Receiver, ...], ListOf] = ()
    """Without effect: alerts start no actions, and mails go to admin-receiver."""
    repeat_interval: Word | None = None
    """How long before an alert is said again."""
    use_pylon: Flag | None = None
    """Whether links go through pylon."""


class MetricsCleaner(KebabSection):
    """prometheus-pushgateway.metrics-cleaner."""

    job_time_to_live: Whole | None = None
    clean_interval: Whole | None = None


class Pushgateway(Service):
    """prometheus-pushgateway: metrics that jobs push."""

    port: Port = 9097
    metrics_cleaner: MetricsCleaner | None = None
