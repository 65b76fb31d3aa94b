"""docs/reference/*.schema.json: of what verbs print with --format json, as `pai-install schema` prints them."""

from __future__ import annotations

import json

from pai_install.cli.schema import SCHEMAS
from pai_install.site.schema import NAMES as SITE


def schemas() -> dict[str, str]:
    """Path below the checkout -> text. Those of a site's files have no page."""
    made = {f"docs/reference/{name}.schema.json": make for name, make in SCHEMAS.items() if name not in SITE}
    return {path: f"{json.dumps(make(), indent=2)}\n" for path, make in made.items()}
