"""Texts of pages: none is missing, unused, or outside of the files of languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from pai_install.app.node_health import GpuState
from pai_install.checks.verdict import Action
from pai_install.console.caller import CallerKind
from pai_install.console.monitoring import CURVES
from pai_install.console.openpai.states import STATES as OPENPAI_STATES
from pai_install.console.pages.rendering import FOLDER, MENU
from pai_install.console.pages.texts import LANGUAGES, language_of, texts_of
from pai_install.jobs.pod_status import STATES
from pai_install.schedulers.simulation import Outcome

PAGES = FOLDER.parent
# texts whose key is put together
FAMILIES = {
    "state": {*STATES, *OPENPAI_STATES.values()},
    "will": set(get_args(Outcome)),
    "outcome": set(get_args(Outcome)),
    "gpu": {*get_args(GpuState), "hidden"},
    "action": set(Action),
    "kind": set(CallerKind),
    "curve": set(CURVES),
    "menu": {name for name, _, _ in MENU},
}
# words that are the same in all languages
SAME = {"pai", "pai-install", "install", "health", "act", "cordon", "logs", "mnt", "user", "kubeconfig"}


def sources() -> Iterator[Path]:
    yield from FOLDER.glob("*.html")
    yield from PAGES.glob("*.py")


def used() -> set[str]:
    """Keys of all calls in templates and modules, and in lists of keys."""
    found: set[str] = set()
    for path in sources():
        found |= set(re.findall(r'"([a-z_]+\.[a-z_]+)"', path.read_text()))
    return {key for key in found if not key.endswith((".html", ".css", ".js", ".yaml"))}


def test_every_text_is_used_and_every_used_text_exists() -> None:
    families = {f"{family}.{key}" for family, keys in FAMILIES.items() for key in keys}
    assert used() | families == set(texts_of("en").entries)


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_have_the_same_texts_with_the_same_values(language: str) -> None:
    ours, others = texts_of("en").entries, texts_of(language).entries
    assert list(ours) == list(others)
    assert [key for key, text in others.items() if not text.strip()] == []
    assert {key: fields(text) for key, text in ours.items()} == {key: fields(text) for key, text in others.items()}


def test_texts_are_translated() -> None:
    ours, others = texts_of("en").entries, texts_of("zh").entries
    assert [key for key, text in ours.items() if text == others[key] and not text.isupper()] == []


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("template", sorted(FOLDER.glob("*.html")), ids=lambda path: path.name)
def test_templates_have_no_words_of_their_own(template: Path) -> None:
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", " ", template.read_text(), flags=re.DOTALL)
    shown = re.sub(r"<[^>]*>", " ", text)
    assert set(re.findall(r"[A-Za-z]{2,}", shown)) <= SAME
    # attributes that are read aloud or shown
    assert not re.search(r'(title|alt|aria-label|placeholder)="[^"\s]', re.sub(r"\s+", " ", text))


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("fr, zh;q=0.3, en;q=0.2", "zh"),
        ("fr", "en"),
        ("zh;q=0", "en"),
        ("zh;q=x, en;q=0.1", "en"),
        ("zh;q=1e9,en", "en"),
        ("zh;q=٣,en;q=0.1", "en"),
        (";,;=,,q=1;;", "en"),
        ("en;q=0.1," * 1000 + "zh", "en"),
    ],
)
def test_the_language_of_a_browser(accepted: str, language: str) -> None:
    assert language_of(accepted, "en") == language


def test_the_language_of_the_site_is_for_other_browsers() -> None:
    assert language_of("fr", "zh") == "zh"
