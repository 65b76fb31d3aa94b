"""Where the cache keeps its content, now and as the site's files say."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.registry.content import (
    Content,
    content_of,
    content_of_variables,
    place_of,
    read_note,
    with_content,
)
from pai_install.registry.model import Cache
from tests.errors import raises
from tests.unit.registry.test_compile import ON, compiled
from tests.unit.site.sites import CONFIG

KEY = base64.b64encode(b"planted").decode()
ACCOUNT = f"docker_cache_azure_account_name: acc\ndocker_cache_azure_account_key: {KEY}\n"
IN_AZURE = Content(account="acc", container="dockerregistry")
IN_FOLDER = Content(folder="/var/lib/registry")


def cache_of(folder: Path, config: str) -> Cache:
    cache = compiled(folder, config).cache
    assert cache is not None
    return cache


def test_it_is_in_a_folder_or_in_azure(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert content_of(cache_of(tmp_path, ON)) == IN_FOLDER
    assert content_of(cache_of(tmp_path, f"{CONFIG}enable_docker_cache: true\n{ACCOUNT}")) == IN_AZURE
    assert str(IN_AZURE) == snapshot
    assert content_of_variables("/x", {}) == Content(folder="/x")
    azure = {"account": "acc", "access_key": KEY, "container": "dockerregistry", "endpoint": ""}
    assert content_of_variables("/x", azure) == IN_AZURE


def test_a_note_of_a_machine_is_read_or_passed_over() -> None:
    assert read_note('{"folder": "/x"}') == Content(folder="/x")
    for text in ("", "{}", "[]", '{"folder": "/x", "account": "a", "container": "c"}', '{"other": 1}'):
        assert read_note(text) is None


def test_a_cache_stays_where_it_is_until_it_is_moved(tmp_path: Path) -> None:
    found = compiled(tmp_path, ON + ACCOUNT)
    assert with_content(found, None) == found
    kept = with_content(found, Content(folder="/old")).cache
    assert kept is not None
    assert (kept.folder, kept.azure) == ("/old", None)
    kept = with_content(found, IN_AZURE).cache
    assert kept is not None
    assert content_of(kept) == IN_AZURE
    assert place_of(kept, IN_AZURE)["access_key"] == KEY


@pytest.mark.parametrize("config", [ON, ON + ACCOUNT.replace("name: acc", "name: other")])
def test_an_account_without_its_key_is_told(tmp_path: Path, config: str) -> None:
    with raises("azure-key-missing", "config.yaml"):
        place_of(cache_of(tmp_path, config), IN_AZURE)
