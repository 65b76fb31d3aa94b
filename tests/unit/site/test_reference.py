"""docs/site.md says what the code does."""

from __future__ import annotations

from pathlib import Path

from pai_install.site.reference import settings_table, with_table
from pai_install.site.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "site.md"


def test_the_table_of_settings_is_the_models() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text


def test_every_setting_is_in_the_table_once() -> None:
    rows = [line.split("`")[1] for line in settings_table() if line.startswith("| `")]
    assert sorted(rows) == sorted(info.alias or name for name, info in Settings.model_fields.items())


def test_every_example_is_named_and_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    folders = sorted(path.name for path in (PAGE.parents[1] / "layouts").iterdir() if path.is_dir())
    assert [name for name in folders if name not in text] == []
