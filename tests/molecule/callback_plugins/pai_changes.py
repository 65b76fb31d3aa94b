"""Ansible callback: what each run of converge.yml changed and found, for the verification to judge."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: pai_changes
type: aggregate
short_description: Keep what each run changed and found
description: Adds a line of JSON to changes.jsonl in the scenario's evidence folder after each run of converge.yml.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """Adds one line per run."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "pai_changes"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Notes which playbook it is."""
        self.playbook = Path(playbook._file_name).name
        self.findings: list[dict[str, str]] = []

    def v2_runner_on_ok(self, result: Any) -> None:
        """Keeps the findings of tasks that judge."""
        self.findings += result._result.get("findings", [])

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Writes the line."""
        if self.playbook != "converge.yml":
            return
        seen = {
            "check": bool(context.CLIARGS.get("check")),
            "changed": {host: stats.summarize(host)["changed"] for host in sorted(stats.processed)},
            "findings": self.findings,
        }
        path = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "evidence" / "changes.jsonl"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(seen) + "\n")
