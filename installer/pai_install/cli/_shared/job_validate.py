"""`job validate`: files of jobs beside the site, where there is one."""

from __future__ import annotations

from pathlib import Path

from pai_install.cli._shared.job_cluster import known_group
from pai_install.cli._shared.tell import say, tell_result
from pai_install.errors import ExitCode
from pai_install.jobs.read import read_job
from pai_install.report.job import readings_data, readings_text
from pai_install.schedulers.job_check import check_job
from pai_install.site.load import LAYOUT, load_site
from pai_install.site.model import Site


def validate_files(site_dir: Path, files: tuple[Path, ...], group: str | None, output_format: str) -> int:
    """Reads the files, and tells what they mean or what is wrong with them."""
    site = _site(site_dir, group)
    readings = [read_job(path) for path in files]
    if site is not None:
        readings = [check_job(one, site, group) for one in readings]
    tell_result(output_format, readings_data(readings), readings_text(readings))
    return ExitCode.OK if all(one.job is not None for one in readings) else ExitCode.SITE_INVALID


def _site(site_dir: Path, group: str | None) -> Site | None:
    """The site, None where the folder has none and no group of it is asked for."""
    if group is None and not (site_dir / LAYOUT).exists():
        say(f"{site_dir} has no {LAYOUT}: the files are checked without a site")
        return None
    site = load_site(site_dir).site
    if group is not None:
        known_group(site, group)
    return site
