"""Filter for agents: the files of one, from the package pai_install/agents of the controller host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# in a checkout, and in an installed package, where ROOT is pai_install/content
AGENTS = next(path for path in (ROOT / "installer/pai_install/agents", ROOT.parent / "agents") if path.is_dir())


def agent_files(agent: str) -> dict[str, str]:
    """Path below the folder of an agent's code -> content. agent: a folder of agents/, such as job_recorder."""
    paths = [AGENTS / "__init__.py", *(path for part in ("common", agent) for path in (AGENTS / part).glob("*.py"))]
    return {f"pai_install/agents/{path.relative_to(AGENTS)}": path.read_text("utf-8") for path in sorted(paths)}


def agent_rows(agent: str, folder: str) -> list[dict[str, str]]:
    """The same files as rows for pai_files. folder: on the machine."""
    return [
        {"path": f"{folder}/{path}", "content": content, "mode": "0644"} for path, content in agent_files(agent).items()
    ]


class FilterModule:
    """Gives the filters to Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Names of the filters."""
        return {"agent_rows": agent_rows}
