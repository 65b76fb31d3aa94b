"""Old OpenPAI sites -> a current one: v0.x layouts, v1.0-v1.4 lists of machines."""

from __future__ import annotations

from pai_install.migrate.run import Migration, migrate

__all__ = ["Migration", "migrate"]
