"""services-configuration.yaml: every section that is known, and whether it has an effect yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath
from pai_install.site.field_metadata import NotYet, WithoutEffect, marker_of
from pai_install.site.services.authentication import Authentication
from pai_install.site.services.console import ConsoleSection
from pai_install.site.services.dynamic_volumes import DynamicVolumes
from pai_install.site.services.hived import Hivedscheduler
from pai_install.site.services.jobs import Jobs
from pai_install.site.services.logs import Logs
from pai_install.site.services.monitoring import (
    AlertManager,
    Grafana,
    JobExporter,
    NodeExporter,
    Prometheus,
    Pushgateway,
)
from pai_install.site.services.openpai import (
    Cleaner,
    DatabaseController,
    LogManager,
    MarketplaceDb,
    MarketplaceRestserver,
    MarketplaceWebportal,
    Postgresql,
    Pylon,
    RestServer,
    Service,
    Webportal,
)
from pai_install.site.services.own_monitoring import Monitoring, read_switch
from pai_install.site.services.registries import RegistrySection
from pai_install.site.services.registry import Cluster, DockerCache
from pai_install.site.services.section import KebabSection, KeptMapping, ListOf, Words
from pai_install.site.services.storage import InternalStorage, StorageManager
from pai_install.site.services.storages import StorageEntry
from pai_install.site.services.virtual_clusters import Scheduler, VirtualClusterEntry

_THEIRS = WithoutEffect("OpenPAI's own services are not deployed")
_DEVICES = WithoutEffect("layout.yaml defines the devices of the machines")
_GRAFANA = WithoutEffect("pai-install does not install Grafana. Import the dashboards of monitoring export into yours")
_EXPORTER = WithoutEffect("the node exporter and the GPU meter provide its metrics")
_HEALTH = NotYet("health takes its limits from health.yml")


class DevicePlugin(Service):
    """device-plugin: which devices Kubernetes offers."""

    devices: Words = ()
    """Resource names, e.g. nvidia.com/gpu."""


class Services(KebabSection):
    """services-configuration.yaml. A section that the file does not have, or that is empty, is None."""

    cluster: Annotated[Cluster | None, _THEIRS] = None
    """Settings and image registry of OpenPAI's services."""
    docker_cache: DockerCache | None = None
    """A pull-through cache of a registry, in the cluster."""
    hivedscheduler: Hivedscheduler | None = None
    """HiveD and its virtual clusters. Used if the section scheduler is missing."""
    authentication: Authentication | None = None
    """Groups, their grants, and the identity provider."""
    storage_manager: StorageManager | None = None
    """The NFS server on the machines with pai-storage."""
    internal_storage: Annotated[InternalStorage | None, _THEIRS] = None
    """The disk of OpenPAI's own services."""
    device_plugin: Annotated[DevicePlugin | None, _DEVICES] = None
    """Devices of Kubernetes."""
    prometheus: Prometheus | None = None
    """Collects metrics."""
    grafana: Annotated[Grafana | None, _GRAFANA] = None
    """Shows metrics."""
    alert_manager: AlertManager | None = None
    """Alerts and their actions."""
    node_exporter: NodeExporter | None = None
    """Metrics of each machine."""
    job_exporter: Annotated[JobExporter | None, _EXPORTER] = None
    """Metrics of GPUs and jobs."""
    prometheus_pushgateway: Annotated[Pushgateway | None, _THEIRS] = None
    """Metrics that jobs push."""
    rest_server: RestServer | None = None
    """OpenPAI's API: limits, and ports for the console."""
    webportal: Webportal | None = None
    """OpenPAI's web pages: a port for the console."""
    pylon: Pylon | None = None
    """The entry to OpenPAI's web pages and API: names and ports for the console."""
    log_manager: Annotated[LogManager | None, _THEIRS] = None
    """Serves the logs of jobs."""
    postgresql: Annotated[Postgresql | None, _THEIRS] = None
    """The history of jobs."""
    database_controller: Annotated[DatabaseController | None, _THEIRS] = None
    """Writes the history of jobs."""
    marketplace_db: Annotated[MarketplaceDb | None, _THEIRS] = None
    marketplace_restserver: Annotated[MarketplaceRestserver | None, _THEIRS] = None
    marketplace_webportal: Annotated[MarketplaceWebportal | None, _THEIRS] = None
    cleaner: Annotated[Cleaner | None, _THEIRS] = None
    dshuttle: Annotated[KeptMapping | None, _THEIRS] = None
    fluentd: Annotated[KeptMapping | None, _THEIRS] = None
    frameworkcontroller: Annotated[KeptMapping | None, _THEIRS] = None
    job_status_change_notification: Annotated[KeptMapping | None, _THEIRS] = None
    k8s_dashboard: Annotated[KeptMapping | None, _THEIRS] = None
    k8s_job_exit_spec: Annotated[KeptMapping | None, _THEIRS] = None
    openpai_runtime: Annotated[KeptMapping | None, _THEIRS] = None
    watchdog: Annotated[KeptMapping | None, _THEIRS] = None

    # ours
    registry: RegistrySection | None = None
    """Upstreams of the cache, mirrors, and logins of private registries."""
    storages: Annotated[tuple[StorageEntry, ...] | None, ListOf] = None
    """Storages of jobs. storageConfigs of a group grants access."""
    dynamic_volumes: DynamicVolumes | None = None
    """Volumes of claims without a volume name and a storage class. Without this section, such claims stay pending."""
    scheduler: Scheduler | None = None
    """Batch scheduler and levels of topology. Without this section, hivedscheduler applies."""
    virtual_clusters: Annotated[tuple[VirtualClusterEntry, ...] | None, ListOf] = None
    """Guaranteed quotas, borrowing, and the groups that may submit jobs."""
    console: ConsoleSection | None = None
    """OpenPAI's API and web pages. `false` removes them."""
    jobs: Jobs | None = None
    """History of ended jobs, and rules for idle and long jobs."""
    monitoring: Annotated[Monitoring | None, BeforeValidator(read_switch)] = None
    """Metrics, alerts, and their receivers."""
    logs: Annotated[Logs | None, BeforeValidator(read_switch)] = None
    """A store of the logs of pods."""
    # its fields are not decided yet
    health: Annotated[KeptMapping | None, _HEALTH] = None
    """Limits of health checks."""

    @property
    def file_server(self) -> StorageManager:
        """How the machines with pai-storage serve, also where the file says nothing of it."""
        return self.storage_manager or StorageManager()

    @property
    def job_records(self) -> Jobs:
        """Returns the settings of job records, with defaults if the file has none."""
        return self.jobs or Jobs()

    @classmethod
    def report_unknown(cls, document: Document, path: YamlPath, remedy: str) -> None:
        """Adds the warning about a section that is not known."""
        message = "is not a known section and has no effect"
        document.add(path, "site.unknown-section", message, remedy, severity="warning")

    def idle(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yields why sections of the file have no effect, or none yet, and which these are."""
        grouped: dict[str, list[str]] = {}
        for name, info in type(self).model_fields.items():
            key, status = info.alias or name, status_of(name)
            if status is not None and key in self.given:
                grouped.setdefault(status, []).append(key)
        yield from ((why, tuple(keys)) for why, keys in grouped.items())


def status_of(name: str) -> str | None:
    """Returns why a section has no effect, or no effect yet, or None. name: of the attribute."""
    info = Services.model_fields[name]
    not_yet, without = marker_of(info, NotYet), marker_of(info, WithoutEffect)
    return not_yet.sentence if not_yet else without.why if without else None
