"""The documentation site: it is complete, needs no other server, and shows pages as GitHub does."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import markdown
import pytest

from pai_install import __version__
from tests.docs.dialect import python_markdown
from tests.docs.site import build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; MkDocs fails on a wrong link, anchor, or picture, and on a page without a place in nav."""
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True, check=False).returncode != 0:
        pytest.skip("no checkout of git")
    folder = tmp_path_factory.mktemp("site")
    (folder / "0.0.9").mkdir()
    (folder / "0.0.9" / "index.html").touch()
    build(folder)
    return folder


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, str]:
    """Place -> HTML."""
    version = folder / __version__
    return {path.relative_to(version).as_posix(): path.read_text(encoding="utf-8") for path in version.rglob("*.html")}


def test_every_guide_has_a_page(pages: dict[str, str]) -> None:
    guides = {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")}
    names = {path.with_name("index.md" if path.name == "README.md" else path.name) for path in guides}
    assert {path.with_suffix(".html").as_posix() for path in names} <= pages.keys()


def test_nothing_is_loaded_from_other_servers(folder: Path, pages: dict[str, str]) -> None:
    loaded = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"')
    assert {name: found for name, html in pages.items() if (found := loaded.findall(html))} == {}
    drawn = [*folder.rglob("*.css"), *folder.rglob("docs/pictures/*.svg")]
    assert drawn
    assert [path for path in drawn if re.search(r"url\([\"']?(?:https?:)?//|href=\"(?!#)", path.read_text())] == []


def test_search_works_without_a_server(folder: Path) -> None:
    index = (folder / __version__ / "search" / "search_index.js").read_text(encoding="utf-8")
    found = {entry["location"].partition("#")[0] for entry in json.loads(index.partition("=")[2])["docs"]}
    assert {"docs/reference/cli.html", "docs/nodes.html"} <= found
    assert (folder / __version__ / "assets" / "iframe-worker.js").is_file()


def test_versions_are_listed_newest_first(folder: Path) -> None:
    listed = [entry["version"] for entry in json.loads((folder / "versions.json").read_text())]
    assert listed == [__version__, "0.0.9"]
    assert re.findall(r'href="([^"]+)"', (folder / "index.html").read_text()) == [f"{one}/index.html" for one in listed]


def test_no_markup_is_left_as_text(pages: dict[str, str]) -> None:
    left = re.compile(r"```|^(?:[-*] |\| )", re.MULTILINE)
    texts = {
        name: re.sub(r"<pre.*?</pre>|<script.*?</script>", "", html, flags=re.DOTALL) for name, html in pages.items()
    }
    assert {name: found for name, text in texts.items() if (found := left.findall(text))} == {}


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("1. a\n\n       code\n", "<ol> <li>a<pre><code>code </code></pre> </li> </ol>"),
        ("10. a\n\n    b\n", '<ol start="10"> <li> <p>a</p> <p>b</p> </li> </ol>'),
        ("- a\n  - b\n    - c\n", "<ul> <li>a<ul> <li>b<ul> <li>c</li> </ul> </li> </ul> </li> </ul>"),
        ("text\n- a\n", "<p>text</p> <ul> <li>a</li> </ul>"),
        ("- a\n\n  b\n- c\n", "<ul> <li> <p>a</p> <p>b</p> </li> <li> <p>c</p> </li> </ul>"),
        ("- a\n\n  b\n  - c\n", "<ul> <li> <p>a</p> <p>b</p> <ul> <li>c</li> </ul> </li> </ul>"),
        ("    - code\n", "<pre><code>- code </code></pre>"),
    ],
)
def test_lists_are_those_of_commonmark(text: str, html: str) -> None:
    shown = markdown.markdown(python_markdown(text), extensions=["sane_lists"])
    assert " ".join(shown.split()) == html
