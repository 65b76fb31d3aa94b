"""The site of the quickstart: a lab whose job, and whose users' first jobs, can run there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.cli import quickstart as verb
from pai_install.cli.main import run
from pai_install.cli.quickstart import GROUP, JOB, JOB_FILE
from pai_install.errors import ExitCode
from pai_install.jobs.model import Job
from pai_install.jobs.read import read_job
from pai_install.lab import requirements, spec_of
from pai_install.profile.project import profile_of
from pai_install.schedulers.job_check import check_job
from pai_install.site import Site, load_site

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "layouts" / "quickstart"


@pytest.fixture(scope="module")
def site() -> Site:
    return load_site(FOLDER).site


def test_it_is_a_lab_with_gpus(site: Site) -> None:
    found = spec_of(site)
    assert [machine.gpus is not None for machine in found.machines] == [False, True, True]
    assert {machine.folders for machine in found.machines} == {("/mnt/data",)}, "the kubelet mounts no missing folder"


def test_its_job_is_a_gang_of_two_roles_with_an_image_of_the_component_store(site: Site) -> None:
    reading = check_job(read_job(FOLDER / JOB_FILE), profile_of(site), GROUP)
    assert reading.problems == ()
    assert isinstance(reading.job, Job)
    assert (reading.job.name, reading.job.gang, len(reading.job.roles)) == (JOB, True, 2)
    assert {role.image for role in reading.job.roles} == {"registry.pai.internal/busybox:stable"}
    assert sum(role.resources.gpus for role in reading.job.roles) > 0
    assert [mount.storage for mount in reading.job.mounts] == ["data"]


def test_without_root_it_stops_before_any_package(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    without = replace(requirements.observe_box(), is_root=False)
    monkeypatch.setattr(requirements, "observe_box", lambda: without)
    monkeypatch.setattr(verb, "component_requirements", lambda _site: pytest.fail("packages come later"))
    assert run(["quickstart", "--site", str(FOLDER), "--yes"]) == ExitCode.PREFLIGHT_FAILED
    errors = capsys.readouterr().err
    assert "root: repeat the command with sudo" in errors
    assert "code: lab-requirements-missing" in errors
