"""The documentation site: what MkDocs builds from the checkout (`make docs-site`), one folder per version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from packaging.version import Version

from pai_install import __version__
from tests.docs.dialect import python_markdown

ROOT = Path(__file__).parents[2]
# Pages and the files that they link to. They keep their place, so that links work as in the checkout.
CONTENT = ("*.md", "LICENSE", "docs/**", "examples/**", "inventories/README.md", "roles/*/README.md")
SHIM = "assets/iframe-worker.js"


def on_config(config: MkDocsConfig) -> None:
    """Expands patterns in nav."""
    config.nav = _expanded(config.nav, _listed(*CONTENT))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the theme, and those of CONTENT in place of the folder docs."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    pages = [File(path, str(ROOT), config.site_dir, config.use_directory_urls) for path in _listed(*CONTENT)]
    shim = File.generated(config, SHIM, content=Path(__file__).with_name("iframe-worker.js").read_text())
    return Files([*theme, *pages, shim])


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page as MkDocs reads it."""
    return python_markdown(markdown)


def _listed(*patterns: str) -> list[str]:
    """The files of the checkout that Git does not ignore."""
    paths = [f":(glob){pattern}" for pattern in patterns]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(path for path in listed if (ROOT / path).exists())


def _expanded(nav: Any, pages: list[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _expanded(entry, pages) for title, entry in nav.items()}
    if isinstance(nav, list):
        return [one for entry in nav for one in _entries(entry, pages)]
    return nav


def _entries(entry: Any, pages: list[str]) -> Iterator[Any]:
    if isinstance(entry, str):
        yield from [page for page in pages if fnmatchcase(page, entry)]
    else:
        yield _expanded(entry, pages)


def build(folder: Path) -> None:
    """Builds the site of this version into `folder`/VERSION and lists all versions that `folder` has.

    Raises CalledProcessError when a page, link, or heading is wrong.
    """
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "installer")))
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder / __version__)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    versions = sorted((path.parent.name for path in folder.glob("*/index.html")), key=Version, reverse=True)
    entries = [{"version": one, "title": one, "aliases": []} for one in versions]
    (folder / "versions.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    links = "\n".join(f'<li><a href="{one}/index.html">{one}</a></li>' for one in versions)
    page = f'<!doctype html>\n<meta charset="utf-8">\n<title>pai-install</title>\n<ul>\n{links}\n</ul>\n'
    (folder / "index.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
