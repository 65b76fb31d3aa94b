"""HiveD itself on what is compiled: it builds all cells before it asks the API server, and ends where it cannot.

PAI_HIVED names HiveD's program.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from pai_install.schedulers.hived.cells import hived_config
from pai_install.scheduling.read import scheduling_of
from tests.hived_demo import demo_site
from tests.hived_program import NEEDS_HIVED, PROGRAM
from tests.virtual_clusters import CASES

pytestmark = NEEDS_HIVED
# with a wrong configuration it ends within half of one
SECONDS = 4.0


def ends(configuration: object, folder: Path) -> str:
    """What HiveD says when it ends with the configuration; empty where it stays."""
    path = folder / "hivedscheduler.yaml"
    path.write_text(f"{yaml.safe_dump(configuration)}\nkubeApiServerAddress: http://127.0.0.1:1\n")
    environment = {**os.environ, "CONFIG": str(path)}
    with subprocess.Popen([PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
        try:
            told, _ = program.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            program.communicate()
            return ""
    return told.decode(errors="replace")


@pytest.mark.parametrize("case", CASES)
def test_hived_starts_with_what_is_compiled(case: str, tmp_path: Path) -> None:
    assert ends(hived_config(CASES[case]()), tmp_path) == ""


def test_hived_starts_with_a_block_as_it_is_written(tmp_path: Path) -> None:
    scheduling = scheduling_of(demo_site(tmp_path))
    assert scheduling is not None
    assert ends(hived_config(scheduling), tmp_path) == ""


def test_hived_ends_with_a_wrong_one(tmp_path: Path) -> None:
    """Else the tests above would show nothing."""
    wrong = hived_config(CASES["two_teams"]())
    wrong["virtualClusters"]["research"]["virtualCells"][0]["cellNumber"] = 99
    assert "Insufficient physical cells" in ends(wrong, tmp_path)
