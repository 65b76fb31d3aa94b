"""docs/site.md names every setting and every example."""

from __future__ import annotations

import re
from pathlib import Path

from pai_install.site.settings import Settings

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "site.md").read_text(encoding="utf-8")


def test_every_setting_is_in_one_of_the_tables_once() -> None:
    _, _, tables = TEXT.partition("<!-- generated: begin")
    rows = re.findall(r"^\| `([^`]+)` \|", tables.partition("<!-- generated: end -->")[0], re.MULTILINE)
    assert sorted(rows) == sorted(info.alias or name for name, info in Settings.model_fields.items())


def test_every_example_is_named_and_there() -> None:
    folders = sorted(path.name for path in (ROOT / "layouts").iterdir() if path.is_dir())
    assert [name for name in folders if name not in TEXT] == []


def test_the_quoted_example_is_that_of_the_layout() -> None:
    quoted = TEXT.partition("### Example")[2].partition("```yaml\n")[2].partition("```")[0]
    assert len(quoted.splitlines()) > 20
    assert quoted in (ROOT / "layouts" / "team" / "services-configuration.yaml").read_text()
