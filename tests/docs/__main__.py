"""`make docs`: writes the pages that are made from the code."""

from __future__ import annotations

from pai_install.system.files import write_atomic
from tests.docs.pages import ROOT, pages

for name, text in pages().items():
    path = ROOT / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomic(path, text)
        print(name)  # noqa: T201 - says what it wrote
