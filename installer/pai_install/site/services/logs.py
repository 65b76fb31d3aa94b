"""logs: a store of the logs of pods. An extension."""

from __future__ import annotations

from pai_install.site.services.own_monitoring import Days, Size
from pai_install.site.services.section import KebabSection


class Logs(KebabSection):
    """logs: true for a store of the logs of all pods with defaults, or a mapping of these keys."""

    retention: Days = 14
    """Days that logs are kept, such as 14d."""
    disk: Size = 100 * 2**30
    """Maximum size of the logs on disk. The oldest days are deleted first."""
