"""What all pages have: navigation, language, no script, no other host, and a small size."""

from __future__ import annotations

import re
from http import HTTPStatus
from pathlib import Path

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from pai_install.console.pages.rendering import FOLDER, MENU
from pai_install.console.pages.texts import LANGUAGE_COOKIE
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import MenuLink
from tests.unit.console.conftest import signed_in
from tests.unit.console.routes.test_jobs import train

__all__ = ["train"]
MOST = 300 * 1024
# the one script, which pages work without
SCRIPT = '<script src="/console.js" defer></script>'


def get(web: TestClient, path: str, who: str = "root", **headers: str) -> str:
    answer = web.get(path, headers={**signed_in(who), **headers})
    assert answer.status_code == HTTPStatus.OK, answer.text
    return answer.text


@pytest.mark.parametrize(
    "path", [path for _, path, _ in MENU] + ["/jobs/alice~train", "/jobs/new", "/jobs/new?as=file", "/nodes/g1"]
)
def test_every_page(train: TestClient, path: str) -> None:
    page = get(train, path)
    assert page.count("<h1>") == 1
    assert page.count("<main ") == 1
    assert 'lang="en"' in page
    assert page.count('aria-current="page"') == 1
    assert re.search(rf'href="{re.escape("/" + path.split("/")[1].partition("?")[0])}" aria-current="page"', page)
    assert len(page) < MOST
    assert len(re.findall(r"<table", page)) == len(re.findall(r"<caption", page))
    # wide tables scroll, not the page
    assert page.count("<table>") == page.count('<div class="scroll" tabindex="0"><table>')
    labels = len(re.findall(r"<(?:input|select|textarea)(?![^>]*type=\"hidden\")", page))
    assert len(re.findall(r"<label", page)) == labels
    assert not re.search(r"<script|\son\w+=|style=|(?:src|href|action)=\"(?:https?:)?//", page.replace(SCRIPT, ""))


@pytest.mark.parametrize("template", sorted(FOLDER.glob("*.html")), ids=lambda path: path.name)
def test_templates_have_no_script_and_no_foreign_address(template: Path) -> None:
    assert not re.search(r"<script|\son\w+=|style=|https?://|\|\s*safe", template.read_text().replace(SCRIPT, ""))


def test_the_style_asks_no_other_host() -> None:
    style = (FOLDER / "console.css").read_text()
    assert not re.search(r"@import|https?:|//|url\((?!data:)", re.sub(r"/\*.*?\*/", "", style))
    assert "prefers-color-scheme: dark" in style


def test_the_style(web: TestClient) -> None:
    assert web.get("/console.css").headers["content-type"].startswith("text/css")


def test_pages_of_administrators_are_not_in_the_menu_of_others(web: TestClient) -> None:
    for who, admin in (("root", True), ("alice", False)):
        page = get(web, "/jobs", who)
        assert {path for _, path, only in MENU if f'<a href="{path}"' in page} == {
            path for _, path, only in MENU if admin or not only
        }


def test_a_page_speaks_the_language_of_its_browser(web: TestClient) -> None:
    page = get(web, "/jobs", **{"Accept-Language": "zh-CN"})
    assert '<html lang="zh">' in page
    assert "<h1>作业</h1>" in page
    assert 'href="/jobs?lang=en" lang="en"' in page


def test_a_person_chooses_a_language(web: TestClient) -> None:
    answer = web.get("/jobs?state=FAILED&lang=zh", headers=signed_in("alice"))
    assert 'href="/jobs?state=FAILED&amp;lang=en"' in answer.text
    kept = answer.headers["set-cookie"]
    assert kept.startswith(f"{LANGUAGE_COOKIE}=zh;")
    assert {"Secure", "HttpOnly", "SameSite=lax", "Path=/"} <= set(kept.split("; "))
    assert "<h1>作业</h1>" in get(web, "/jobs", Cookie=f"{LANGUAGE_COOKIE}=zh")
    assert "<h1>Jobs</h1>" in get(web, "/jobs?lang=en", Cookie=f"{LANGUAGE_COOKIE}=zh")


@pytest.mark.parametrize("word", ["fr", "../zh", "<script>", "zh\x00", "z" * 5000])
def test_an_unknown_language_is_ignored(web: TestClient, word: str) -> None:
    answer = web.get("/jobs", params={"lang": word}, headers={**signed_in("alice"), "Cookie": f"{LANGUAGE_COOKIE}=xx"})
    assert '<html lang="en">' in answer.text
    assert "set-cookie" not in answer.headers
    assert "<script>" not in answer.text


def test_a_problem_is_a_page_with_the_menu(train: TestClient) -> None:
    answer = train.get("/jobs/alice~none", headers={**signed_in("alice"), "Accept-Language": "zh"})
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert '<a href="/jobs"' in answer.text
    assert "aria-current" not in answer.text
    assert "无法完成" in answer.text


def test_pages_of_others_are_in_the_menu(web: TestClient, services: ConsoleServices) -> None:
    """Of webportal.plugins. They open in a window that cannot change this one, and learn no address of the console."""
    link = MenuLink(title='Wiki <script>"', address="https://wiki.example.org/?a=1&b=2")
    object.__setattr__(services, "settings", services.settings.model_copy(update={"links": (link,)}))
    shown = 'href="https://wiki.example.org/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer"'
    page = get(web, "/jobs", "alice")
    assert f"<li><a {shown}>Wiki &lt;script&gt;&#34;</a></li>" in page
    assert "<script>" not in page
    assert shown not in web.get("/login").text


@pytest.mark.parametrize("address", ["javascript:x", "//a.example.org/", "https://a@b.example.org/", "/jobs", ""])
def test_settings_take_no_other_address_of_a_link(address: str) -> None:
    with pytest.raises(ValidationError):
        MenuLink(title="Wiki", address=address)
