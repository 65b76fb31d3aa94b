"""The quickstart on bare machines, as README has it: a gang of two roles."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from .conftest import ROOT, equip, pai_install, traces

pytestmark = pytest.mark.lab

SUBNET = "172.30.74"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the quickstart's site at other addresses."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    folder = tmp_path_factory.mktemp("site") / "quickstart"
    shutil.copytree(ROOT / "layouts" / "quickstart", folder, ignore=shutil.ignore_patterns(".pai"))
    layout = folder / "layout.yaml"
    layout.write_text(layout.read_text().replace("172.30.75.", f"{SUBNET}."))
    equip(folder)
    try:
        yield folder
    finally:
        down = pai_install("lab", "down", "--site", str(folder), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


@pytest.fixture(scope="module")
def done(site: Path) -> CompletedProcess[str]:
    """The quickstart as it ended."""
    return pai_install("quickstart", "--site", str(site), "--yes", timeout_s=3000)


def test_it_ends_with_the_output_of_a_gang(done: CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "worker-0: step 3: weight 3 from the parameter server" in lines
    assert "ps-0: step 3: gradient 3, weight 6" in lines
    assert sum("(stand-in)" in line for line in lines) == 2, "the GPUs of the worker"


def test_it_shows_no_finding_of_the_lab_itself(done: CompletedProcess[str]) -> None:
    found = [line for line in done.stdout.splitlines() if line.startswith(("WARN ", "UNKNOWN ", "FAIL "))]
    # what a busy box does to its disk is true
    assert [line for line in found if "etcd-disk" not in line] == []
