"""Agents as roles and add-ons install them."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.addons import ROOT


def install_agent(agent: str, folder: Path) -> Path:
    """Writes the files of an agent; the folder to start it in."""
    files = runpy.run_path(str(ROOT / "playbooks/filter_plugins/pai_agents.py"))["agent_files"](agent)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder
