"""Every page that is made from the code."""

from __future__ import annotations

from pathlib import Path

from pai_install.site.reference import with_table
from tests.docs.codes import codes_page
from tests.docs.programs import components_page
from tests.docs.roles import ROLES, readme, roles_page
from tests.docs.security import with_controls
from tests.docs.verbs import cli_page

ROOT = Path(__file__).parents[2]


def pages(root: Path = ROOT) -> dict[str, str]:
    """Path below `root` -> what the page should say. Reads the pages that are made in part. Writes nothing."""
    return {
        "docs/reference/cli.md": cli_page(),
        "docs/reference/roles.md": roles_page(root),
        "docs/reference/exit-codes.md": codes_page(),
        "docs/reference/components.md": components_page(),
        "docs/site.md": with_table((root / "docs/site.md").read_text(encoding="utf-8")),
        "docs/security.md": with_controls((root / "docs/security.md").read_text(encoding="utf-8")),
        **{f"roles/{role}/README.md": readme(root, role) for role in ROLES},
    }
