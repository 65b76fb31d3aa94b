"""Pictures of what users see: a terminal and an HTML report, as SVG that loads nothing."""

from __future__ import annotations

import io
import re
from xml.sax.saxutils import escape

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from pai_install.health.html import html
from pai_install.health.report import HealthReport
from tests.docs.examples import plan_shown
from tests.unit.health.machines import gpu_change, healthy

_COLUMNS = 110
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_WIDTH, _HEIGHT = 860, 700
_SILENT = {"gpu-04": "ssh: connect to host 10.0.0.14 port 22: No route to host"}


def pictures() -> dict[str, str]:
    """Path below the checkout -> SVG."""
    return {
        "docs/pictures/plan.svg": _terminal("pai-install plan --site my-site", plan_shown()),
        "docs/pictures/health.svg": _page(html(_health(), title="Health of my-site, 2026-11-26 09:30 UTC")),
    }


def _health() -> HealthReport:
    """One machine without faults, two with a sick GPU each, and one that does not answer."""
    broken = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy(2, "gpu-02"))
    slow = gpu_change("persistence_mode", "Disabled")(healthy(2, "gpu-03"))
    return HealthReport(tuple(box.report() for box in (healthy(2, "gpu-01"), broken, slow)), _SILENT, "my-site")


def _terminal(command: str, output: str) -> str:
    """A terminal in which `command` printed `output`."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), highlight=False)
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    console.print(Text(output.rstrip()))
    return _FONTS.sub("", console.export_svg(title=command, theme=MONOKAI, unique_id="terminal")).rstrip() + "\n"


def _page(page: str) -> str:
    """The upper part of an HTML page as a browser shows it before its scripts run."""
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    body = page[page.index("<body>") + len("<body>") : page.index("</body>")]
    shown = re.sub(r"<script.*?</script>|\n\s*(?=\n)", "", body, flags=re.DOTALL)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">\n'
        f"<style>{escape(style)}</style>\n"
        f'<foreignObject width="{_WIDTH}" height="{_HEIGHT}">\n'
        f'<body xmlns="http://www.w3.org/1999/xhtml">{shown}</body>\n'
        "</foreignObject>\n</svg>\n"
    )
