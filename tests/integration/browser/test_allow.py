"""The page that asks whether a program gets a token, in Chromium. It needs a sign-in at an identity provider."""

from __future__ import annotations

from pathlib import Path

from tests.integration.browser.driver import driven
from tests.integration.console.conftest import HOST, console, own, users
from tests.integration.console.test_oidc import VSCODE, Provider, provider, to_vscode

__all__ = ["console", "own", "provider", "users"]


def test_the_page_is_accessible(provider: Provider, tmp_path: Path) -> None:
    browser = provider.console.new()
    page = to_vscode(provider, browser)
    assert VSCODE in page.text
    files = {
        "/allow": ("text/html", page.text),
        "/console.css": ("text/css", browser.get("/console.css").text),
    }
    seen = driven("page.js", {"url": f"https://{HOST}", "address": "/allow", "files": files}, tmp_path, 120)
    assert (seen["violations"], seen["wide"], seen["errors"]) == ([], [], [])
    assert seen["sizes"]["/allow"] > 0
