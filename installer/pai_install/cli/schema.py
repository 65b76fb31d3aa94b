"""`pai-install schema`: the JSON Schema of a site's file, or of a command's output."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from pai_install.app.explain import ExplainReport
from pai_install.cli.output import echo
from pai_install.components.report import BundleReport, CacheReport, CatalogueReport, ComponentsReport
from pai_install.health.document import AcknowledgementsReport, HealthDocument, HistoryReport
from pai_install.json_schema import Report, schema_of
from pai_install.migrate.report import MigrationReport
from pai_install.operations.listing import OperationsReport
from pai_install.parts.addon import schema as addon_schema
from pai_install.preflight.document import PreflightDocument
from pai_install.report.alerts import AlertsReport
from pai_install.report.certificates import CertificatesReport
from pai_install.report.data import RunReport, RunsReport
from pai_install.report.error import ErrorReport
from pai_install.report.gpu_hours import UsageReport
from pai_install.report.job import ReadingsReport
from pai_install.report.job_models import JobReport, JobsReport
from pai_install.report.job_templates import ImportReport, TemplateReport, TemplatesReport
from pai_install.report.plan import PlanDocument
from pai_install.report.quickstart import QuickstartReport
from pai_install.report.registries import RegistriesReport
from pai_install.report.status import StatusReport
from pai_install.report.storage import StorageReport
from pai_install.report.storages import StoragesReport
from pai_install.report.users import UsersReport
from pai_install.report.virtual_cluster import VirtualClusterReport
from pai_install.report.virtual_clusters import VirtualClustersReport
from pai_install.report.virtual_clusters_plan import ClustersChangeReport
from pai_install.report.virtual_clusters_simulation import SimulationReport
from pai_install.report.virtual_clusters_usage import QuotaUsageReport
from pai_install.site.schema import NAMES as SITE
from pai_install.site.schema import schema as site_schema
from pai_install.site.validation import ValidationReport

# name -> its model
REPORTS: dict[str, type[Report]] = {
    "quickstart": QuickstartReport,
    "validate": ValidationReport,
    "migrate": MigrationReport,
    "report": RunReport,
    "runs": RunsReport,
    "plan": PlanDocument,
    "status": StatusReport,
    "operations": OperationsReport,
    "preflight": PreflightDocument,
    "health": HealthDocument,
    "health-acknowledge": AcknowledgementsReport,
    "health-history": HistoryReport,
    "explain": ExplainReport,
    "alerts": AlertsReport,
    "certificates": CertificatesReport,
    "components": CatalogueReport,
    "components-fetch": ComponentsReport,
    "components-status": CacheReport,
    "components-bundle": BundleReport,
    "registries": RegistriesReport,
    "storages": StoragesReport,
    "storage": StorageReport,
    "virtual-clusters": VirtualClustersReport,
    "virtual-cluster": VirtualClusterReport,
    "virtual-clusters-usage": QuotaUsageReport,
    "virtual-clusters-plan": ClustersChangeReport,
    "virtual-clusters-simulation": SimulationReport,
    "usage": UsageReport,
    "job-validate": ReadingsReport,
    "job": JobReport,
    "jobs": JobsReport,
    "job-templates": TemplatesReport,
    "job-template": TemplateReport,
    "job-template-import": ImportReport,
    "users": UsersReport,
    "error": ErrorReport,
}
# name -> what makes it
SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    **{name: lambda name=name: site_schema(name) for name in SITE},  # type: ignore[misc]
    "addon": addon_schema,
    **{name: partial(schema_of, report) for name, report in REPORTS.items()},
}


@click.command
@click.argument("name", type=click.Choice(list(SCHEMAS)))
def command(*, name: str) -> int:
    """Print the JSON Schema of a site file, of a JSON report, of the JSON error, or of addon.yml.

    `report` is the output of apply and verify.
    """
    echo(json.dumps(SCHEMAS[name](), indent=2))
    return 0
