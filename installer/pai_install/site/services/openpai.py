"""OpenPAI's own services: their sections are accepted and checked, and change nothing here."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationInfo, model_validator

from pai_install.documents.document import Entries
from pai_install.site.field_metadata import WithoutEffect
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
    WordOrWords,
    choice,
    report_missing,
)

_THEIRS = WithoutEffect("OpenPAI's own services are not deployed")
_KEYS = WithoutEffect("the console has keys of its own")
_LOGS = WithoutEffect("logs are read from the cluster")
_TRANSFER = WithoutEffect("jobs stay in their cluster")
_CERTIFICATE = WithoutEffect("write the files of pylon.ssl as `certificate` and `key` of the section console")
_MARKETPLACE = WithoutEffect("templates take the place of the marketplace: `job template import` reads its items")
_TEMPLATES = WithoutEffect("users of the console can always save templates")
_PLUGIN = WithoutEffect("the pages of the console run no script of a plugin")


class Service(KebabSection):
    """The common settings of OpenPAI's services. service_type: from its defaults, without effect."""

    service_type: Word | None = Field(default=None, alias="service_type")


class Common(KebabSection):
    """cluster.common."""

    cluster_id: Word | None = None
    """Name of the cluster in OpenPAI's own objects."""
    cluster_type: Annotated[str, choice("k8s")] | None = None
    """Only k8s is accepted."""
    data_path: Word | None = None
    job_history: Word | None = None
    qos_switch: Word | None = None
    az_rdma: Word | None = None
    k8s_rbac: Word | None = None
    deploy_in_aks: Word | None = None
    docker_data_root: Word | None = None
    """Without effect: docker_data_root in config.yaml decides."""
    prometheus_pushgateway: Word | None = None
    marketplace: Word | None = None
    dshuttle: Word | None = None


class RestServer(Service):
    """rest-server: OpenPAI's API."""

    @model_validator(mode="before")
    @classmethod
    def has_admin(cls, data: object, info: ValidationInfo) -> object:
        """Warns of half a login."""
        login = ("default-pai-admin-username", "default-pai-admin-password")
        if isinstance(data, Entries) and any(data.get(key) for key in login):
            report_missing(data, info, *login)
        return data

    server_port: Port = 9186
    """Port of the API with console.legacy-ports."""
    default_pai_admin_username: Word | None = None
    """Name of the first administrator."""
    default_pai_admin_password: Hidden | None = None
    """Password of the first administrator. A short or public one is refused: a warning, and no one signs in with it."""
    jwt_secret: Annotated[Hidden | None, _KEYS] = None
    jwt_expire_time: Word | None = None
    """Lifetime of API sessions, such as 7d, or in seconds. At most 7 days."""
    rate_limit_api_per_min: Whole | None = None
    """As console.rates.api-per-min."""
    rate_limit_list_job_per_min: Whole | None = None
    """As console.rates.list-per-min."""
    rate_limit_submit_job_per_hour: Whole | None = None
    """As console.rates.submit-per-hour."""
    schedule_port_start: Annotated[Port, _THEIRS] = 15000
    """First port that a job may ask for."""
    schedule_port_end: Annotated[Port, _THEIRS] = 40000
    """First port after the range for jobs."""
    debugging_reservation_seconds: Annotated[Count | None, _THEIRS] = None
    enable_priority_class: Annotated[Flag | None, _THEIRS] = None
    sql_max_connection: Annotated[Whole | None, _THEIRS] = None
    hived_computing_device_envs: Annotated[WordOrWords | None, _THEIRS] = None
    """Environment variables that say which devices a container has."""
    log_server: Annotated[Word | None, _LOGS] = None
    log_azure_storage_account: Annotated[Word | None, _LOGS] = Field(default=None, alias="log_azure_storage_account")
    log_azure_storage_account_key: Annotated[Hidden | None, _LOGS] = Field(
        default=None, alias="log_azure_storage_account_key"
    )
    log_azure_storage_container_name: Annotated[Word | None, _LOGS] = Field(
        default=None, alias="log_azure_storage_container_name"
    )
    github_owner: Annotated[Word | None, _THEIRS] = None
    github_repository: Annotated[Word | None, _THEIRS] = None
    github_path: Annotated[Word | None, _THEIRS] = None
    launcher_type: Annotated[Word | None, _THEIRS] = None


class Plugin(Section):
    """webportal.plugins[]: a link in the menu of the console."""

    id: Annotated[Word | None, _PLUGIN] = None
    title: Word | None = None
    """Text of the link."""
    uri: Word | None = None
    """Page that the link opens in a new window. A script is not run, and has no link."""
    config: Annotated[Free, _PLUGIN] = None


class Webportal(Service):
    """webportal: OpenPAI's web pages."""

    server_port: Port = 9286
    """Port of the pages with console.legacy-ports."""
    enable_job_transfer: Annotated[Flag | None, _TRANSFER] = None
    marketplace: Annotated[Flag | None, _MARKETPLACE] = None
    save_template: Annotated[Flag | None, _TEMPLATES] = None
    plugins: Annotated[tuple[Plugin, ...], ListOf] = ()
    """Links in the menu of the console."""


class Ssl(Section):
    """pylon.ssl: certificate and key, as paths in OpenPAI's controller host."""

    port: Port = 443
    """As console.port."""
    crt_name: Annotated[Word | None, _CERTIFICATE] = None
    crt_path: Annotated[Word | None, _CERTIFICATE] = None
    key_name: Annotated[Word | None, _CERTIFICATE] = None
    key_path: Annotated[Word | None, _CERTIFICATE] = None


class Pylon(Service):
    """pylon: the entry to OpenPAI's web pages and API."""

    port: Port = 80
    """Port of the redirect to HTTPS."""
    domain: Word | None = None
    """A host name of the console."""
    uri: Word | None = None
    """Address of the console. Only its host name is used."""
    ssl: Ssl | None = None
    """Port of HTTPS."""
    webhdfs_legacy_port: Annotated[Port | None, _THEIRS] = None
    deploy_service: Flag | None = None
    """`false` does not remove the console: write `console: false`."""


class LogManager(Service):
    """log-manager: serves the logs of jobs."""

    port: Port = 9103
    admin_name: Word | None = Field(default=None, alias="admin_name")
    admin_password: Hidden | None = Field(default=None, alias="admin_password")
    jwt_secret: Hidden | None = Field(default=None, alias="jwt_secret")
    token_expired_second: Whole | None = Field(default=None, alias="token_expired_second")


class Postgresql(Service):
    """postgresql: the history of jobs."""

    user: Word | None = None
    passwd: Hidden | None = None
    db: Word | None = None
    port: Port = 5432
    max_connection: Whole | None = None


class DatabaseController(Service):
    """database-controller: writes the history of jobs."""

    log_level: Word | None = None
    retain_mode: Flag | None = None
    k8s_connection_timeout_second: Whole | None = None
    write_merger_connection_timeout_second: Whole | None = None
    write_merger_port: Port | None = None
    write_merger_max_db_connection: Whole | None = None
    write_merger_max_heap_mb: Whole | None = None
    db_poller_interval_second: Whole | None = None
    db_poller_max_db_connection: Whole | None = None
    db_poller_max_rpc_concurrency: Whole | None = None
    db_poller_max_heap_mb: Whole | None = None
    framework_watcher_max_rpc_concurrency: Whole | None = None
    framework_watcher_max_heap_mb: Whole | None = None
    framework_watcher_watch_timeout_seconds: Whole | None = None
    cluster_event_watcher_max_rpc_concurrency: Whole | None = None
    cluster_event_watcher_max_heap_mb: Whole | None = None
    cluster_event_max_db_connection: Whole | None = None
    cluster_event_watcher_max_disk_usage_percent: Whole | None = None
    cluster_event_watcher_watch_timeout_seconds: Whole | None = None


class Cleaner(Service):
    """cleaner: removed images when a disk was full."""

    threshold: Whole | None = None
    interval: Whole | None = None


class MarketplaceDb(Service):
    """marketplace-db."""

    user: Word | None = None
    passwd: Hidden | None = None
    db: Word | None = None
    port: Port | None = None
    max_connection: Whole | None = None
    data_path: Word | None = None


class AzureStorage(Section):
    """marketplace-restserver.azure_storage."""

    type: Word | None = None
    storage_account: Word | None = None
    connection_strings: Annotated[tuple[Hidden, ...], ListOf] = ()


class MarketplaceRestserver(Service):
    """marketplace-restserver."""

    server_port: Port | None = None
    db_user: Word | None = Field(default=None, alias="db_user")
    db_password: Hidden | None = Field(default=None, alias="db_password")
    db: Word | None = None
    db_port: Port | None = Field(default=None, alias="db_port")
    azure_storage: AzureStorage | None = Field(default=None, alias="azure_storage")
    azure_storage_json: Hidden | None = Field(default=None, alias="azure_storage_json")


class MarketplaceWebportal(Service):
    """marketplace-webportal."""

    api_port: Port | None = None
    server_port: Port | None = None
