"""The site of the quickstart: a lab whose job, and whose users' first jobs, can run there."""

from __future__ import annotations

import json
import shutil
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
from pai_install.users.credentials import fingerprint
from tests.unit.cli.stub_environment import World
from tests.unit.cli.stub_environment import run as run_in_world
from tests.unit.cluster.fake import FakeCluster
from tests.unit.operations.test_users import PLACES, namespace

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


@pytest.fixture
def lab_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the site, whose machines run already. Its job prints a line and ends."""
    folder = tmp_path / "site"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns(".pai"))
    for name in ("check_host", "up"):
        monkeypatch.setattr(f"pai_install.lab.{name}", lambda *_, **__: None)
    for name in ("_install_packages", "site_components"):
        monkeypatch.setattr(verb, name, lambda *_, **__: None)
    monkeypatch.setattr("getpass.getuser", lambda: "Ada.L")

    def run_job(_folder: Path, _environment: object, user: str, *, again: bool) -> int:
        print(f"the job of {user}, again: {again}")  # noqa: T201 - as a job does
        return ExitCode.OK

    monkeypatch.setattr(verb, "_run_job", run_job)
    return folder


@pytest.fixture
def quick(in_world: Any) -> World:
    found: World = in_world(World(api=FakeCluster.of(*PLACES, namespace("team"))))
    return found


def test_it_makes_the_login_an_administrator_with_a_link_each_time(lab_site: Path, quick: World, capsys: Any) -> None:
    words = ["quickstart", "--site", str(lab_site), "--yes"]
    links = []
    for _ in range(2):
        assert run_in_world([*words, "--format", "json"]) == ExitCode.OK
        shown = capsys.readouterr()
        assert "the job of ada-l" in shown.err, "the document alone is on stdout"
        found = json.loads(shown.out)
        assert found["job"]["url"] == "https://172.30.75.11/jobs/ada-l~first-job"
        assert found["sign_in"]["user"] == "ada-l"
        links.append(found["sign_in"]["url"])
    assert len(set(links)) == 2
    assert [ref.name for ref in quick.api.objects if ref.name.startswith("link.")] == [f"link.{_mark(links[1])}"]
    bound = {(ref.kind, ref.namespace) for ref in quick.api.objects if ref.name == "pai-user-ada-l"}
    assert bound == {("rolebinding", "admins"), ("rolebinding", "team"), ("clusterrolebinding", "")}
    assert run_in_world(words) == ExitCode.OK
    out = capsys.readouterr().out
    assert "the first job: https://172.30.75.11/jobs/ada-l~first-job\n" in out
    assert "  https://172.30.75.11/password/" in out


def test_a_site_without_a_console_gets_no_user(lab_site: Path, quick: World, capsys: Any) -> None:
    services = lab_site / "services-configuration.yaml"
    services.write_text(f"{services.read_text()}\nconsole: false\n")
    assert run_in_world(["quickstart", "--site", str(lab_site), "--yes", "--format", "json"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["console"], found["sign_in"], found["job"]["url"]) == (None, None, None)
    assert not [ref for ref in quick.api.objects if "ada-l" in ref.name]


def _mark(link: str) -> str:
    return fingerprint(link.rpartition("/")[2])
