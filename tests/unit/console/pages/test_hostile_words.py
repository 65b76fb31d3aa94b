"""Each text that a member writes, in turn, is a hostile one: every page shows it as text."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from pai_install.console.services import ConsoleServices
from pai_install.system.plain import plain_text
from tests.unit.console.conftest import eventually, signed_in
from tests.unit.console.live import LiveCluster
from tests.unit.console.pages.cluster import fill
from tests.unit.console.pages.test_templates import NEW, send
from tests.unit.console.routes.test_jobs import FILE, job_of, named, pod, post

Json = dict[str, Any]
Way = tuple[str | int, ...]
# ends each context of HTML, of a script, of a template, and of a terminal
WORDS = "javascript:alert(1)//'\"></textarea></pre></title><script>x</script><img src=x onerror=y>{{7*7}}\x1b[2J\u202e"
MARK = "javascript:alert(1)"
# what the API server keeps to letters, and what names the object
NAMES = ("apiVersion", "kind", "name", "namespace", "uid", "labels", "resourceVersion", "creationTimestamp")
PAGES = (
    *("/", "/jobs", "/jobs/alice~train", "/jobs/alice~train/log/worker/0", "/jobs/carol~holds", "/templates"),
    *("/templates/digits?group=Vision_1", "/jobs/new?job=alice~train", "/jobs/new?template=digits&group=Vision_1"),
    *("/virtual-clusters", "/virtual-clusters/research", "/nodes", "/nodes/g1", "/health", "/storages", "/account"),
)


def texts(value: Any, way: Way = ()) -> Iterator[Way]:
    """Where the texts of an object are, also those of JSON in a text."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if not (key in NAMES and (not way or way[-1] in {"metadata", "ownerReferences"})):
                yield from texts(item, (*way, key))
    elif isinstance(value, str):
        yield way
        if (inner := within(value)) is not None:
            yield from ((*way, "json", *one) for one in texts(inner))


def within(text: str) -> Any:
    """The JSON of a text, None for another text."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def hostile(value: Any, way: Sequence[str | int]) -> Any:
    """The same with a hostile text at a place."""
    if not way:
        return WORDS
    if isinstance(value, str):
        return json.dumps(hostile(within(value), way[1:]))
    changed = value.copy()
    changed[way[0]] = hostile(value[way[0]], way[1:])
    return changed


class _Page(HTMLParser):
    """What a browser would run or open on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"img", "iframe", "object", "embed", "base"} or (
            tag == "script" and given.get("src") != "/console.js"
        ):
            self.wrong.append(f"<{tag}>")
        self.wrong += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        links = (given.get(name) for name in ("href", "src", "action", "formaction"))
        self.wrong += [f"{tag} {link}" for link in links if link and not link.startswith(("/", "#", "?"))]


def wrong(text: str) -> list[str]:
    """What of the hostile text a browser takes for a part of the page."""
    page = _Page()
    page.feed(text)
    return [*page.wrong, *(["49"] if "//'49" in text else []), *([] if plain_text(text) == text else ["hidden"])]


def asked(web: TestClient) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """The pages on which a hostile text is no text, and those that show it."""
    answers = {path: web.get(path, headers=signed_in("alice")) for path in PAGES}
    assert {path: it.status_code for path, it in answers.items() if it.status_code >= 500} == {}
    found = [(path, bad) for path, it in answers.items() if (bad := wrong(it.text))]
    return found, [path for path, it in answers.items() if MARK in it.text]


@pytest.fixture
def full(web: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> TestClient:
    """A console of a cluster in use: with jobs, pods, logs, events, and a template."""
    fill(web, services, kubernetes)
    pod(kubernetes, 0, "Failed", terminated={"exitCode": 1, "reason": "Error", "message": "out of memory"})
    pod(kubernetes, 1, "Pending", waiting={"reason": "ImagePullBackOff", "message": "no such image"})
    kubernetes.put(event())
    kubernetes.logged["train-worker-0-0"] = f"{WORDS}\n"
    assert send(web, "alice", "/templates", **NEW, content=FILE).status_code == HTTPStatus.SEE_OTHER
    eventually(lambda: len(services.model.jobs.pods) == 4)
    return web


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("<script src=/console.js></script><a href=/jobs>x</a>", []),
        (f"<p>{WORDS}</p>", ["<script>", "<img>", "img onerror", "img x", "hidden"]),
        (f"<a href='{MARK}'>x</a>", [f"a {MARK}"]),
        ("<p onclick=x style=y>//'49</p>", ["p onclick", "p style", "49"]),
    ],
)
def test_a_page_that_takes_a_text_for_more_is_found(page: str, names: list[str]) -> None:
    assert wrong(page) == names


def event() -> Json:
    about = {"kind": "Pod", "name": "train-worker-0-0", "namespace": "vision-1"}
    metadata = {"name": "train-worker-0-0.1", "namespace": "vision-1"}
    said = {"reason": "BackOff", "message": "pulls again", "type": "Warning", "source": {"component": "kubelet"}}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, **said}


def test_every_text_of_an_object_is_text_on_every_page(full: TestClient, kubernetes: LiveCluster) -> None:
    found, shown = [], set[str]()
    # each place once per kind; pods of the first job have the most texts
    places = {
        (item["kind"], tuple(0 if isinstance(step, int) else step for step in way)): (item, way)
        for item in deepcopy([*kubernetes.objects.values()])
        if item["kind"] in {"JobSet", "Pod", "Event", "Workload", "ConfigMap"}
        if item["metadata"].get("namespace") == "vision-1" and "holds" not in item["metadata"]["name"]
        for way in texts(item)
    }
    assert len(places) > 50
    for item, way in places.values():
        kubernetes.put(hostile(item, way))
        # a watch tells the model
        time.sleep(0.02)
        bad, seen = asked(full)
        found += [(item["kind"], way, *one) for one in bad]
        shown.update(seen)
        kubernetes.put(item)
    assert found == []
    assert {"/", "/jobs", "/jobs/alice~train", "/jobs/alice~train/log/worker/0", "/virtual-clusters/research"} <= shown


def test_every_text_of_a_job_file_is_text_on_every_page(
    full: TestClient, services: ConsoleServices, kubernetes: LiveCluster
) -> None:
    file, found, accepted = yaml.safe_load(FILE), [], 0
    written = {**file, "jobRetryCount": 1, "description": "a job", "contributor": "alice"}
    written["taskRoles"]["worker"]["extraContainerOptions"] = {"infiniband": False}
    for way in [*texts(written), ("name",)]:
        content = yaml.safe_dump(hostile(written, way))
        kubernetes.delete([one for one in kubernetes.objects if one.name == "train" and one.kind == "jobset"])
        eventually(lambda: len(services.model.jobs) == 2)
        if post(full, "alice", content).status_code != HTTPStatus.ACCEPTED:
            continue
        accepted += 1
        eventually(lambda: len(services.model.jobs) == 3)
        assert job_of(kubernetes)
        found += [(way, *one) for one in asked(full)[0]]
    assert found == []
    assert accepted
    assert post(full, "alice", named(FILE, "last")).status_code == HTTPStatus.ACCEPTED
