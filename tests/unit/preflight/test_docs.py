"""docs/preflight.md says what the code does: checks and ports. PAI_RECORD=1 writes them anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pai_install.preflight import needs
from pai_install.preflight.report import check_table
from pai_install.site import Site

GUIDE = Path(__file__).parents[3] / "docs" / "preflight.md"


def table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    """A Markdown table with two columns."""
    return "\n".join(f"| {left} | {right} |" for left, right in [head, ("---", "---"), *rows])


def ports(site: Site) -> str:
    """Every port, and on which machines."""
    first = {str(need): need for need in needs.ports(site, site.machine("master"))}
    worker = {str(need) for need in needs.ports(site, site.machine("worker1"))}
    rows = [
        (
            f"{name} {need.purpose}",
            ("every machine" if name in worker else "control planes")
            + (", from the machine itself" if need.local else ""),
        )
        for name, need in first.items()
    ]
    return table(("Port", "On"), rows)


def test_guide_is_the_codes(site: Site) -> None:
    text = GUIDE.read_text()
    checks = table(("Check", "What must be so"), [(f"`{name}`", title) for name, title in check_table()])
    for name, content in (("checks", checks), ("ports", ports(site))):
        block = rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end -->)"
        assert re.search(block, text, re.DOTALL)
        text = re.sub(block, rf"\g<1>{content}\n\g<2>", text, flags=re.DOTALL)
    if "PAI_RECORD" in os.environ:
        GUIDE.write_text(text)
    assert GUIDE.read_text() == text
