"""Pages of templates: what each caller sees, starts, and changes."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.console.sign_in.forms import form_token
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.kube.model import Ref
from pai_install.parts.example_templates import example_templates
from tests.unit.cli.test_job_template import FILE
from tests.unit.console.conftest import signed_in
from tests.unit.console.live import LiveCluster
from tests.unit.console.pages.test_jobs import shown
from tests.unit.console.pages.test_new_job import SUBMIT, idle
from tests.unit.console.routes.test_jobs import train

__all__ = ["idle", "train"]
OF_ALICE = "/templates/digits?group=Vision_1"
NEW = {"title": "digits", "group": "Vision_1", "description": "Trains <b>digits</b>", "tags": "a, b,a"}


def send(web: TestClient, who: str, path: str, **form: str) -> Any:
    headers = {**signed_in(who), "Cookie": f"{COOKIE}=a-session", "Origin": "https://testserver"}
    return web.post(path, data={"form": form_token("a-session"), **form}, headers=headers)


@pytest.fixture
def saved(idle: TestClient, kubernetes: LiveCluster) -> TestClient:
    """A console with a template of alice, and the examples."""
    kubernetes.put(*example_templates())
    answer = send(idle, "alice", "/templates", **NEW, content=FILE.replace("\n", "\r\n"))
    assert (answer.status_code, answer.headers["location"]) == (303, OF_ALICE)
    return idle


def cards(page: str) -> list[str]:
    return re.findall(r'<h2><a href="/templates/[^"]*">([^<]*)</a>', page)


def jobs(kubernetes: LiveCluster) -> list[str]:
    return [ref.name for ref in kubernetes.objects if ref.kind == "jobset"]


def test_cards_and_search(saved: TestClient) -> None:
    page = shown(saved, "/templates", "alice")
    assert cards(page)[0] == "digits"
    assert "openpai-single" in cards(page)
    assert "tensorflow-volcano" not in cards(page)
    assert "Trains &lt;b&gt;digits&lt;/b&gt;" in page
    assert cards(shown(saved, "/templates?search=DIGITS+trains", "alice")) == ["digits"]
    assert cards(shown(saved, "/templates?search=%3Cscript%3E", "alice")) == []
    assert "digits" not in cards(shown(saved, "/templates", "bob"))
    assert cards(shown(saved, "/templates", "dan")) == []


def test_a_job_is_checked_and_started(saved: TestClient, kubernetes: LiveCluster) -> None:
    page = shown(saved, OF_ALICE, "alice")
    assert 'name="p.epochs" value="10"' in page
    answer = send(saved, "alice", OF_ALICE, do="check", **{"p.epochs": "20", "p.rate": "0.1", "cluster": "research"})
    assert SUBMIT in answer.text
    assert "epochs: &#34;20&#34;   # times" in answer.text
    assert "rate: &#34;0.1&#34;" in answer.text
    assert jobs(kubernetes) == []
    answer = send(saved, "alice", OF_ALICE, do="submit", name="mine", **{"p.epochs": "20"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs/alice~mine")
    assert jobs(kubernetes) == ["mine"]
    assert "epochs: " in shown(saved, "/jobs/alice~mine")
    answer = send(saved, "bob", "/templates/openpai-single", do="to-file", name="small")
    assert "&#34;jobName&#34;: small" in answer.text


def test_wrong_values(saved: TestClient, kubernetes: LiveCluster) -> None:
    for form in ({"p.epoch": "1"}, {"p.epochs": "\x1b"}, {"p.epochs": "x" * 5000}):
        answer = send(saved, "alice", OF_ALICE, do="submit", **form)
        assert answer.status_code == HTTPStatus.BAD_REQUEST
        assert 'role="alert"' in answer.text
    answer = send(saved, "alice", OF_ALICE, do="submit", name="</textarea><script>")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "<script>" not in answer.text
    assert jobs(kubernetes) == []


def test_no_secret_is_a_mask(saved: TestClient, kubernetes: LiveCluster) -> None:
    content = f"{FILE}secrets: {{token: s3cret-word}}\n"
    assert send(saved, "alice", "/templates", **{**NEW, "title": "hidden"}, content=content).status_code == 303
    path = "/templates/hidden?group=Vision_1"
    assert 'value="submit"' not in shown(saved, path, "alice")
    assert send(saved, "alice", path, do="submit").status_code == HTTPStatus.BAD_REQUEST
    assert "******" in send(saved, "alice", path, do="to-file").text
    assert jobs(kubernetes) == []


@pytest.mark.parametrize("who", ["bob", "dan"])
def test_templates_of_another_group_are_none(saved: TestClient, kubernetes: LiveCluster, who: str) -> None:
    for path in (OF_ALICE, "/templates/digits", "/templates/digits?group=nlp", "/templates/..%2fx?group=nlp"):
        answer = saved.get(path, headers=signed_in(who))
        assert answer.status_code in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
        assert "example.com/train" not in answer.text
        for wanted in ("submit", "remove", "publish"):
            assert send(saved, who, path, do=wanted).status_code >= 400
    assert send(saved, who, "/templates", **NEW, content=FILE).status_code == HTTPStatus.FORBIDDEN
    assert jobs(kubernetes) == []


def test_a_colleague_uses_it_and_changes_nothing(saved: TestClient, kubernetes: LiveCluster) -> None:
    page = shown(saved, OF_ALICE, "carol")
    assert 'value="remove"' not in page
    assert send(saved, "carol", OF_ALICE, do="remove").status_code == HTTPStatus.FORBIDDEN
    assert send(saved, "carol", "/templates", **NEW, content=FILE).status_code == HTTPStatus.BAD_REQUEST
    assert send(saved, "carol", OF_ALICE, do="publish").status_code == HTTPStatus.FORBIDDEN
    assert send(saved, "carol", OF_ALICE, do="submit", name="hers").status_code == HTTPStatus.SEE_OTHER
    assert Ref("configmap", "template.digits", "vision-1") in kubernetes.objects


def test_published_templates(saved: TestClient, kubernetes: LiveCluster) -> None:
    kept = kubernetes.objects[Ref("configmap", "template.digits", "vision-1")]
    kubernetes.put({**kept, "metadata": {**kept["metadata"], "namespace": "pai-templates"}})
    assert "digits" in cards(shown(saved, "/templates", "bob"))
    assert send(saved, "bob", "/templates/digits", do="remove").status_code == HTTPStatus.FORBIDDEN
    assert 'value="remove"' in shown(saved, "/templates/digits", "root")
    assert 'value="remove"' not in shown(saved, "/templates/openpai-single", "root")
    assert send(saved, "root", "/templates/openpai-single", do="remove").status_code == HTTPStatus.BAD_REQUEST
    assert send(saved, "root", "/templates/digits", do="remove").headers["location"] == "/templates"
    assert Ref("configmap", "template.digits", "pai-templates") not in kubernetes.objects


def test_a_job_becomes_a_template(train: TestClient, kubernetes: LiveCluster) -> None:
    assert 'href="/templates/new?from=alice~train"' in shown(train, "/jobs/alice~train")
    page = shown(train, "/templates/new?from=alice~train")
    assert "example.com/train:1" in page
    assert train.get("/templates/new?from=alice~train", headers=signed_in("bob")).status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("changes", [{"title": "A B"}, {"title": ""}, {"content": "a: ["}, {"content": ""}])
def test_a_wrong_template_keeps_what_was_typed(saved: TestClient, changes: dict[str, str]) -> None:
    answer = send(saved, "alice", "/templates", **{**NEW, "content": FILE, **changes})
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert 'role="alert"' in answer.text
    assert "Trains &lt;b&gt;digits&lt;/b&gt;" in answer.text


def test_strange_templates_are_shown_escaped(saved: TestClient, kubernetes: LiveCluster) -> None:
    evil = "</pre><script>alert(1)</script>"
    notes = {"pai-install/template-description": evil, "pai-install/template-tags": evil}
    labels = {"pai-install/template": "yes"}
    metadata = {"name": "template.evil", "namespace": "vision-1", "labels": labels, "annotations": notes}
    parameters = "protocolVersion: 2\nparameters: {'\"><script>': 1, &a b: *a}\n"
    data = {"job": parameters + evil}
    kubernetes.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    for path in ("/templates", "/templates/evil?group=Vision_1"):
        page = shown(saved, path, "alice")
        assert "<script" not in page
        assert "&lt;script&gt;" in page


def test_other_sites_change_nothing(saved: TestClient, kubernetes: LiveCluster) -> None:
    for path, form in (("/templates", {**NEW, "content": FILE}), (OF_ALICE, {"do": "remove"})):
        headers = {**signed_in("alice"), "Cookie": f"{COOKIE}=a-session", "Origin": "https://evil.example.com"}
        answer = saved.post(path, data={"form": form_token("a-session"), **form}, headers=headers)
        assert answer.status_code == HTTPStatus.FORBIDDEN
    assert Ref("configmap", "template.digits", "vision-1") in kubernetes.objects
