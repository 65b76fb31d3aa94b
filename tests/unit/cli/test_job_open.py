"""`pai-install job open`: where the owner opens the web page of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, run
from tests.unit.cli.test_job import folder, world
from tests.unit.console.web_pages.conftest import page_job

__all__ = ["folder", "world"]


@pytest.fixture
def note(world: World) -> World:
    """A job of alice with a web page."""
    for item in page_job("alice", "note", 8888):
        item["metadata"]["namespace"] = "nlp"
        world.api.apply([item])
    return world


def test_the_address_is_that_of_the_console(folder: str, note: World, capsys: Any) -> None:
    assert run(["job", "open", "note", "--site", folder]) == ExitCode.OK
    assert capsys.readouterr().out == "https://10.0.0.1/jobs/alice~note/open\n"


def test_a_job_without_a_web_page_has_none(folder: str, note: World, capsys: Any) -> None:
    for item in note.api.objects.values():
        item["metadata"].get("labels", {}).pop("pai-install/web-port", None)
    assert run(["job", "open", "note", "--site", folder]) == ExitCode.USAGE
    assert "code: web-page-missing" in capsys.readouterr().err


def test_a_site_without_isolated_groups_opens_none(folder: str, note: World, capsys: Any) -> None:
    config = Path(folder) / "config.yaml"
    config.write_text(f"{config.read_text()}\ngroup_isolation: false\n")
    assert run(["job", "open", "note", "--site", folder]) == ExitCode.USAGE
    assert "code: web-pages-closed" in capsys.readouterr().err
