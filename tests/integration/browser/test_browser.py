"""The console in Chromium: jobs by the keyboard alone in two languages, one without scripts, axe-core on all pages."""

from __future__ import annotations

import os
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest

from pai_install.app.users import password_link
from pai_install.console.pages.all_pages import page_routes
from pai_install.console.pages.texts import texts_of
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import read_settings
from tests.integration.browser.driver import MOST, driven, person
from tests.integration.browser.machine import JOBS, SPACE, kubelet, start_job
from tests.integration.clients import http_client
from tests.integration.control_plane import create_system_pod
from tests.integration.openpai.conftest import Console, console, quickstart
from tests.unit.app.test_code_upload import tarred
from tests.unit.console.live import LiveClients, LiveCluster

__all__ = ["console", "quickstart"]
FIELDS = {
    "cluster": "default",
    "r0.image": "example.com/train:1",
    "r0.instances": "2",
    "r0.gpus": "1",
    "r0.cpu": "1",
    "r0.memory": "1",
    "r0.command": "python train.py",
}
JOB, PLAIN = JOBS["en"], "without-scripts"
PAGES = (
    *("/", "/jobs", "/jobs/new", "/jobs/new?as=file", f"/jobs/alice~{JOB}", "/templates", "/templates/new"),
    *("/templates/openpai-single", "/virtual-clusters", "/virtual-clusters/default", "/nodes", "/nodes/worker-1"),
    *(
        "/health",
        "/services",
        "/services/kube-system/component",
        "/services/kube-system/log/component",
        "/runs",
        "/users",
        "/users/alice",
        "/storages",
        "/account",
        "/jobs/alice~missing",
    ),
)


@pytest.fixture(scope="module")
def seen(console: Console, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser found, while a machine ran its jobs."""
    home = tmp_path_factory.mktemp("home")
    code = home / "code.tar.gz"
    # more than one ConfigMap holds
    code.write_bytes(tarred({"train.py": b"print(1)", "noise": os.urandom(200_000)}))
    create_system_pod(console.admin, "main", "side")
    link = password_link(http_client(console.admin), "bob", console.url, timedelta(hours=1))
    given = {
        "url": console.url,
        "member": person("alice", console.password("alice")),
        "administrator": person("root", console.password("root")),
        "jobs": {key: {"fields": {"name": name, **FIELDS}, "code": str(code)} for key, name in JOBS.items()},
        "plain": {"name": PLAIN, **FIELDS},
        "typed": {"name": "typed", **FIELDS},
        "pages": [*PAGES, link.url.removeprefix(console.url)],
    }
    with kubelet(console) as port:
        for name in JOBS.values():
            Thread(target=start_job, args=(console.admin, port, name), daemon=True).start()
        return driven("browser.js", given, home)


@pytest.mark.parametrize("language", JOBS)
def test_a_job_needs_no_mouse(seen: Any, language: str) -> None:
    job = f"/jobs/alice~{JOBS[language]}"
    log, texts = f"{job}/log/worker/0", seen["texts"][language]
    assert seen["walked"][language] == ["/", "/jobs", "/jobs/new", "/jobs/new", job, log, job, job]
    assert texts["log"].split("\n")[:4] == ["step 0", "step 1", "step 2", "step 3"]
    words = texts_of(language)
    assert words("new_job.valid") in texts["checked"]
    assert any(words(f"state.{state}") in texts["submitted"] for state in ("WAITING", "STARTING", "RUNNING"))
    assert any(words(f"state.{state}") in texts["stopped"] for state in ("STOPPING", "STOPPED"))


def test_a_form_is_checked_while_a_person_types(seen: Any) -> None:
    typed, words = seen["typed"], texts_of("en")
    assert typed["focus"] == "two-and-more"
    assert "is not a whole number" in typed["problem"]
    assert (typed["live"], typed["said"]) == ("polite", f"✕ {words('new_job.found', number=1)}")
    assert words("new_job.valid") in typed["valid"]
    assert typed["invalid"] == 0
    assert "instances: 2" in typed["file"]
    # one request at a time, and none for each key
    assert typed["most"] == 1
    assert 2 <= typed["sent"] < 20


def test_the_file_is_beside_its_form_where_there_is_room(seen: Any) -> None:
    (left, top), (beside, side_top) = seen["typed"]["wide"]
    assert beside > left + 300
    assert abs(side_top - top) < 100
    (left, top), (below, below_top) = seen["typed"]["narrow"]
    assert below == left
    assert below_top > top + 300


def test_code_goes_along(seen: Any, console: Console) -> None:
    maps = console.admin.ask("GET", f"/api/v1/namespaces/{SPACE}/configmaps")["items"]
    parts = [one for one in maps if one["metadata"]["name"].startswith(f"{JOB}-code-")]
    assert len(parts) == 3
    assert {one["metadata"]["labels"]["pai-install/user"] for one in parts} == {"alice"}
    assert {one["metadata"]["ownerReferences"][0]["name"] for one in parts} == {JOB}


def test_pages_are_accessible(seen: Any) -> None:
    assert seen["violations"] == []
    assert seen["addresses"][:-1] == list(PAGES)


def test_every_page_is_looked_at(console: Console) -> None:
    """All pages of a console, but files and streams, and a log, which the walks judge."""
    kept = {
        "/console.css",
        "/console.js",
        "/jobs/{name}/changes",
        "/jobs/{name}/log/{role}/{index}",
        "/jobs/{name}/open",
    }
    services = ConsoleServices(read_settings(console.folder / "console.json"), LiveClients(LiveCluster(), {}))
    routes = [one for one in page_routes(services) if "GET" in (one.methods or ())]
    paths = [address.partition("?")[0] for address in PAGES]
    missing = [one.path for one in routes if not any(one.path_regex.fullmatch(path) for path in paths)]
    assert set(missing) == kept


def test_no_text_of_a_chinese_page_is_english(seen: Any) -> None:
    assert seen["untranslated"] == [], seen["untranslated"]


def test_pages_fit_into_a_small_window(seen: Any) -> None:
    assert seen["wide"] == []


def test_pages_are_small_and_ask_no_other_host(seen: Any) -> None:
    assert seen["foreign"] == []
    assert seen["errors"] == []
    assert {address: size for address, size in seen["sizes"].items() if size > MOST} == {}


def test_no_page_needs_a_script(seen: Any) -> None:
    plain = seen["plain"]
    assert plain["job"] == f"/jobs/alice~{PLAIN}"
    assert "STOP" in plain["stopped"]
    assert {page for page, (status, _) in plain["pages"].items() if status != 200} == {"/jobs/alice~missing"}
    assert set(PAGES) < set(plain["pages"])
    assert all(title for _, title in plain["pages"].values())
