"""Use cases of monitoring: files for a monitoring of the site's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App
from pai_install.errors import ExitCode, PaiError
from pai_install.monitoring.export import exported
from pai_install.monitoring.scrape import Scraping
from pai_install.parts.monitoring import cache_login, scrape_seconds, scraper_files
from pai_install.parts.node_exporter import exporter_port
from pai_install.registry.compile import registries_of
from pai_install.registry.identity import read_identity
from pai_install.system.files import write_atomic, write_secret
from pai_install.system.parameters import Parameter


class ExportMonitoring(BaseModel):
    """Where the files go."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    to: Annotated[Path, Parameter(metavar="DIR")] = Field(
        description="Folder of the files. Files of before are replaced."
    )


@dataclass(frozen=True, slots=True)
class MonitoringFiles:
    """files: paths below the folder. secret: those with a key."""

    folder: Path
    files: tuple[str, ...]
    secret: tuple[str, ...]


def export_monitoring(app: App, request: ExportMonitoring) -> MonitoringFiles:
    """Writes the files. Raises PaiError without monitoring, and if the folder cannot be written."""
    require_monitoring(app, "export files of monitoring")
    site = app.site
    identity = read_identity(app.state.registry)
    login = cache_login(registries_of(site, identity).cache, identity)
    scraping = Scraping(scrape_seconds(site), exporter_port(site), outside=True)
    certified = identity is not None and identity.scraper is not None
    if not certified:
        app.notify("without the client certificate of node exporters: run pai-install apply, and export again")
    found = exported(site, scraping, login, scraper_files(identity) if certified else {})
    try:
        for path, file in found.items():
            (write_secret if file.secret else write_atomic)(request.to / path, file.content)
    except OSError as error:
        raise PaiError(
            f"cannot write {error.filename or request.to}: {error.strerror}",
            code="export-not-written",
            remedy="choose another folder with --to",
            exit_code=ExitCode.USAGE,
        ) from error
    secret = tuple(path for path, file in found.items() if file.secret)
    return MonitoringFiles(request.to, tuple(found), secret)


def require_monitoring(app: App, action: str) -> None:
    """Raises PaiError for a site without monitoring."""
    if app.site.services.monitoring is None:
        raise PaiError(
            f"cannot {action}: the site has no monitoring",
            code="monitoring-off",
            remedy="write `monitoring: true` in services-configuration.yaml, and run pai-install apply",
            exit_code=ExitCode.USAGE,
        )
