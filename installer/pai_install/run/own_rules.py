"""Rules of a site's own are checked by promtool before anything acts: Prometheus does not start with a wrong one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pai_install.components.catalogue import load_catalogue
from pai_install.components.modules import Modules
from pai_install.components.progress import silent
from pai_install.components.store import Store, default_cache
from pai_install.errors import ExitCode, PaiError
from pai_install.parts.monitoring import own_rules
from pai_install.system.plain import plain_text
from pai_install.system.proc import run

if TYPE_CHECKING:
    from pai_install.components.model import Selection
    from pai_install.components.source import Source
    from pai_install.site import Site

_TIMEOUT_S = 60


def check_own_rules(site: Site, selection: Selection, source: Source) -> None:
    """Raises PaiError for rules that promtool rejects. Without promtool on this host, Prometheus judges them."""
    text = own_rules(site)
    promtool = _promtool(selection, source) if text else None
    if text and promtool is not None:
        require_valid(text, promtool)


def require_valid(text: str, promtool: Path) -> None:
    """Raises PaiError for a rule file that promtool rejects."""
    with tempfile.TemporaryDirectory(prefix="pai-rules-") as folder:
        path = Path(folder) / "customized-alerts"
        path.write_text(text, encoding="utf-8")
        done = run([promtool, "check", "rules", "--lint=none", path], check=False, timeout_s=_TIMEOUT_S)
    if not done.ok:
        raise PaiError(
            "cannot use prometheus.customized-alerts: promtool rejects a rule",
            code="own-rules-invalid",
            details=plain_text(done.stderr.replace(f"{folder}/", ""))[:2000],
            remedy="correct the rule in services-configuration.yaml",
            exit_code=ExitCode.SITE_INVALID,
        )


def _promtool(selection: Selection, source: Source) -> Path | None:
    """Returns promtool of the build of Prometheus, or None for images of others."""
    pick = next((pick for pick in selection.picks if pick.component == "prometheus"), None)
    if pick is None or source.name != "modules":
        return None
    entry = Store(default_cache()).lookup(Modules(load_catalogue()).programs_key(pick), silent)
    return entry.path("promtool") if entry is not None else None
