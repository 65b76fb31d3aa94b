"""The console in Chromium: a job by the keyboard alone, and pages that axe-core finds nothing wrong with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.integration.browser.machine import JOB, SPACE, kubelet, start_job
from tests.integration.openpai.conftest import Console, api, console, programs
from tests.npm import installed
from tests.unit.app.test_code_upload import tarred

__all__ = ["api", "console", "programs"]
HERE = Path(__file__).parent / "node"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FIELDS = {
    "name": JOB,
    "cluster": "default",
    "r0.image": "example.com/train:1",
    "r0.instances": "2",
    "r0.gpus": "1",
    "r0.cpu": "1",
    "r0.memory": "1",
    "r0.command": "python train.py",
}
PAGES = (
    *("/", "/jobs", "/jobs/new", "/jobs/new?as=file", f"/jobs/alice~{JOB}", "/templates", "/templates/new"),
    *("/templates/openpai-single", "/virtual-clusters", "/virtual-clusters/default", "/nodes", "/nodes/gpu-1"),
    *("/health", "/services", "/runs", "/users", "/users/alice", "/storages", "/account", "/jobs/alice~missing"),
)
# bytes of a page
MOST = 300 * 1024


def chromium() -> str:
    """The browser. Skips without it, or with a Node.js that cannot drive it."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    if int(node.lstrip("v").partition(".")[0] or 0) < 20:
        pytest.skip("Node.js 20 or newer is not installed")
    return found


@pytest.fixture(scope="module")
def seen(console: Console, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser found, while a machine ran its job."""
    with kubelet(console) as port:
        starting = Thread(target=start_job, args=(console.admin, port), daemon=True)
        starting.start()
        return found_by(console, tmp_path_factory.mktemp("home"))


def found_by(console: Console, home: Path) -> Any:
    """What the browser found."""
    folder, code = installed("axe-core@4.14.1", "playwright-core@1.65.1"), home / "code.tar.gz"
    # more than one ConfigMap holds
    code.write_bytes(tarred({"train.py": b"print(1)", "noise": os.urandom(200_000)}))
    given = {
        "url": console.url,
        "chromium": chromium(),
        "member": {"name": "alice", "password": console.password("alice")},
        "administrator": {"name": "root", "password": console.password("root")},
        "job": {"fields": FIELDS, "code": str(code)},
        "pages": PAGES,
    }
    environment = {
        "GIVEN": json.dumps(given),
        "HOME": str(home),
        "NODE_PATH": str(folder),
        "PATH": os.environ["PATH"],
    }
    words = ["node", str(HERE / "browser.js")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_job_needs_no_mouse(seen: Any) -> None:
    job = f"/jobs/alice~{JOB}"
    log = f"{job}/log/worker/0"
    assert seen["walked"] == ["/", "/jobs", "/jobs/new", "/jobs/new", job, log, job, job, "/"]
    assert seen["texts"]["log"].split("\n")[:4] == ["step 0", "step 1", "step 2", "step 3"]
    assert "policies of the cluster permit the job" in seen["texts"]["checked"]
    assert any(state in seen["texts"]["submitted"] for state in ("WAITING", "STARTING", "RUNNING"))
    assert "STOP" in seen["texts"]["stopped"]


def test_code_goes_along(seen: Any, console: Console) -> None:
    maps = console.admin.ask("GET", f"/api/v1/namespaces/{SPACE}/configmaps")["items"]
    parts = [one for one in maps if one["metadata"]["name"].startswith(f"{JOB}-code-")]
    assert len(parts) == 3
    assert {one["metadata"]["labels"]["pai-install/user"] for one in parts} == {"alice"}
    assert {one["metadata"]["ownerReferences"][0]["name"] for one in parts} == {JOB}


def test_pages_are_accessible(seen: Any) -> None:
    assert seen["violations"] == []
    assert seen["addresses"] == ["/login", *PAGES]


def test_pages_fit_into_a_small_window(seen: Any) -> None:
    assert seen["wide"] == []


def test_pages_are_small_and_ask_no_other_host(seen: Any) -> None:
    assert seen["foreign"] == []
    assert {address: size for address, size in seen["sizes"].items() if size > MOST} == {}
