"""An agent starts with the files that its role or add-on installs."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.addons import ROOT
from tests.unit.agents.installed import install_agent


@pytest.mark.parametrize("agent", ["job_recorder", "gpu_use", "hived_bridge", "group_network"])
def test_installed_files_are_complete(agent: str, tmp_path: Path) -> None:
    folder = install_agent(agent, tmp_path)
    command = [sys.executable, "-I", "-S", "-B", "-c"]
    code = f"import sys; sys.path[0:0] = ['.']; import pai_install.agents.{agent}.__main__ as it; print(it.__file__)"
    done = subprocess.run([*command, code], cwd=folder, check=True, capture_output=True, text=True)
    assert Path(done.stdout.strip()).resolve().is_relative_to(folder.resolve())


def test_agents_are_found_in_an_installed_package(tmp_path: Path) -> None:
    """A wheel has the playbooks in pai_install/content, beside the agents."""
    package = tmp_path / "pai_install"
    shutil.copytree(ROOT / "installer/pai_install/agents", package / "agents")
    filters = package / "content/playbooks/filter_plugins"
    shutil.copytree(ROOT / "playbooks/filter_plugins", filters)
    agent_files = runpy.run_path(str(filters / "pai_agents.py"))["agent_files"]
    here = runpy.run_path(str(ROOT / "playbooks/filter_plugins/pai_agents.py"))["agent_files"]
    assert agent_files("gpu_use") == here("gpu_use")
