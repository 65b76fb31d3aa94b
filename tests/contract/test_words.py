"""Words that this project once made up, and the field's own in their place: docs/glossary.md has the rest."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("playbooks", "roles", "inventories", "addons", "installer", "docs")
# scenarios are tests; wrappers are Go modules and the licences of others
OUTSIDE = {"molecule", "wrappers"}
KINDS = {".py", ".yml", ".md", ".j2", ".sh"}
# pattern -> what to write
INSTEAD = {
    r"(?i)patience": "timeout",
    r"left behind": "the managed state, or leftovers",
    r"any more\b": "no longer",
    r"brought back|bring back": "restore",
    r"cannot be told": "cannot be read",
    r"\banew\b": "again, or restart",
    # but for the account of that name
    r"\bnobody\b(?![:\"])|\bsomebody\b": "no one, or the one who is meant",
    r"without asking who": "anonymous",
    r"Keep what": "Record",
    r"put right\b": "revert, repair",
    r"for good\b": "permanently",
    r"at its end\b": "expired",
    r"is no file\b": "is not a file",
    r"(?i)\bthis box\b|\bdev box\b(?! \|)": "the controller host",
    r"lives here": "is installed",
    r"(?i)nothing swaps": "swap is off",
    r"\bno way to\b": "cannot reach",
    r"keeps? packets away": "packets are filtered",
    r"\bmend(s|ed|ing)?\b": "repair, resolve",
    r"\bfor ever\b": "permanently, without end",
    r"\b(can|cannot|could|not) be had\b": "is available, is unavailable, cannot be fetched",
    r"\bwas cut off\b": "was interrupted",
    r"gave no (answer|evidence|facts|JSON|token)": "did not answer, returned no",
    r"not as the site says": "differs from the site",
    r"\bis meant\b": "did you mean",
    r"calls itself": "the host name is",
    r"in place of ours|beside ours": "name what is ours: pai-install's",
}


def lines() -> list[tuple[str, str]]:
    """Path:line and text of the product and its pages."""
    found = []
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))):
        if path.suffix in KINDS and not OUTSIDE & set(path.parts):
            for number, text in enumerate(path.read_text().splitlines(), start=1):
                found.append((f"{path.relative_to(ROOT)}:{number}", text))
    return found


def test_words_do_not_come_back() -> None:
    texts = lines()
    assert [
        f"{place}: {text.strip()} (write: {instead})"
        for pattern, instead in INSTEAD.items()
        for place, text in texts
        if re.search(pattern, text)
    ] == []
