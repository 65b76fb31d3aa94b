"""OpenPAI's extension in a real VS Code. PAI_VSCODE names its folder, PAI_CODE_SERVER code-server's entry.js.

docs/console.md says how both are built. The extension needs redhat.vscode-yaml, which no registry of npm has: a folder
with an empty extension stands for it.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.browser.driver import driven
from tests.integration.control_plane import running
from tests.integration.openpai.conftest import Console, console, quickstart
from tests.integration.openpai.test_requests_of_clients import VSCODE_JOB
from tests.ports import free_port

__all__ = ["console", "quickstart"]
EXTENSION, EDITOR = os.environ.get("PAI_VSCODE", ""), os.environ.get("PAI_CODE_SERVER", "")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not EXTENSION or not EDITOR, reason="PAI_VSCODE or PAI_CODE_SERVER names nothing"),
]
JOB = "from_vscode"
YAML = {"name": "vscode-yaml", "publisher": "redhat", "version": "1.0.0", "engines": {"vscode": "^1.40.0"}}
SETTINGS = {
    "editor.autoClosingBrackets": "never",
    "editor.autoClosingQuotes": "never",
    "editor.autoIndent": "none",
    "workbench.startupEditor": "none",
}


@contextmanager
def editor(home: Path, console: Console) -> Iterator[str]:
    """Yields the address of code-server, with the extension, and a folder with a job file."""
    other = home / "extensions/redhat.vscode-yaml-1.0.0"
    other.mkdir(parents=True)
    (other / "package.json").write_text(json.dumps({**YAML, "main": "./main.js", "activationEvents": ["*"]}))
    (other / "main.js").write_text("exports.activate = () => ({ registerContributor() {} });")
    (home / "extensions/openpaivscodeclient.pai-vscode-0.3.2").symlink_to(EXTENSION)
    (home / "data/User").mkdir(parents=True)
    (home / "data/User/settings.json").write_text(json.dumps(SETTINGS))
    port, log = free_port(), home / "editor.log"
    environment = {"HOME": str(home), "NODE_EXTRA_CA_CERTS": str(console.authority)}
    node = os.environ.get("PAI_CODE_NODE", "node")
    words: list[str | Path] = ["env", *(f"{name}={value}" for name, value in environment.items()), node, EDITOR]
    folders: list[str | Path] = ["--extensions-dir", home / "extensions", "--user-data-dir", home / "data"]
    quiet = ["--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"]
    with running([*words, "--bind-addr", f"127.0.0.1:{port}", *folders, *quiet, home / "work"], log):
        until_there(f"http://127.0.0.1:{port}/healthz", log)
        yield f"http://127.0.0.1:{port}/?folder={home / 'work'}"


def until_there(url: str, log: Path) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 # ours
                return
        except OSError:
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.5)


@pytest.fixture(scope="module")
def seen(console: Console, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the editor asked and showed."""
    home = tmp_path_factory.mktemp("editor")
    (home / "work").mkdir()
    job = {**VSCODE_JOB, "name": JOB}
    (home / "work/job.pai.yaml").write_text(yaml.safe_dump(job))
    host = console.url.removeprefix("https://")
    account = {"name": "here", "username": "alice", "password": console.password("alice"), "https": True}
    places = {"rest_server_uri": f"{host}/rest-server", "web_portal_uri": host, "protocol_version": "2"}
    with editor(home, console) as url:
        given = {
            "editor": url,
            "host": host,
            "cluster": {**account, **places},
            "file": str(home / "work/job.pai.yaml"),
            "job": JOB,
            "picture": str(home / "editor.png"),
        }
        return driven("vscode.js", given, home)


def test_it_finds_the_api_of_the_host(seen: Any) -> None:
    assert '"https": true' in seen["settings"].replace("\xa0", " ")
    assert '"protocol_version": "2"' in seen["settings"].replace("\xa0", " ")


def test_it_submits_and_lists(seen: Any, console: Console) -> None:
    assert seen["said"] == ["Successfully submitted job."]
    assert seen["tree"].count(JOB) == 2, "once among its own, once among all"
    assert "data" in seen["tree"], "the storage of the group"
    status, text = console.ask("GET", f"/api/v2/jobs/alice~{JOB}", console.token("alice"))
    assert (status, json.loads(text)["name"]) == (200, JOB)
