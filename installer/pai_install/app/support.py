"""Use case of the support bundle: one archive of logs, versions, findings, and reports, without secrets."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install import __version__
from pai_install.app.context import App
from pai_install.app.runs import status_of
from pai_install.errors import PaiError
from pai_install.parts.registry import system_namespaces
from pai_install.report.status import status_report
from pai_install.run.signals import ending_like_ctrl_c
from pai_install.run.state import open_state
from pai_install.run.support.bundle import from_controller_host, known_secrets, write_bundle
from pai_install.run.support.gather import Collected, from_cluster, from_machines
from pai_install.run.support.masks import Masks
from pai_install.system.parameters import Parameter

MB = 1_000_000


class WriteSupportBundle(BaseModel):
    """A request for a support bundle."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    offline: bool = Field(default=False, description="Collect only from this host, not from the machines.")
    out: Annotated[Path | None, Parameter(metavar="FILE", default="named after the time")] = Field(
        None, description="The bundle."
    )
    max_size: int = Field(100, ge=1, description="Limit in megabytes, before compression.")
    timeout: int = Field(180, ge=1, description="Time limit per machine, in seconds.")


@dataclass(frozen=True, slots=True)
class SupportBundle:
    """A bundle. missing: source -> reason. dropped: files above the limit of size."""

    path: Path
    files: int
    missing: dict[str, str]
    dropped: tuple[str, ...]


def write_support_bundle(app: App, request: WriteSupportBundle) -> SupportBundle:
    """Writes the bundle, with known secrets masked. An unreachable machine is listed as missing."""
    now = datetime.now(UTC)
    path = request.out or Path(f"pai-install-support-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    state, found = open_state(app.site_dir), Collected()
    found.files["versions.txt"] = f"pai-install {__version__}\npython {sys.version}\n{platform.platform()}\n"
    with ending_like_ctrl_c():
        from_controller_host(app.site_dir, state, found)
        try:
            site = app.site
        except PaiError as error:
            found.missing["site"] = f"{error.message}\n{error.details}"
        else:
            _status(app, found, offline=request.offline)
            if not request.offline:
                app.notify("collecting from the machines")
                with app.open_engine() as engine:
                    from_machines(engine, site, request.timeout, found)
                from_cluster(app.cluster, system_namespaces(), found)
    masks = Masks(known_secrets(app.site_dir, state))
    dropped = tuple(write_bundle(path, found, masks, request.max_size * MB))
    return SupportBundle(path, len(found.files) - len(dropped), found.missing, dropped)


def _status(app: App, found: Collected, *, offline: bool) -> None:
    try:
        status = status_report(status_of(app, offline=offline)).as_json()
    except PaiError as error:
        found.missing["status"] = error.message
        return
    found.files["status.json"] = json.dumps(status, indent=2) + "\n"
