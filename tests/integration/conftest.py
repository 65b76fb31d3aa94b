"""The fixtures of all folders."""

from __future__ import annotations

from tests.integration.control_plane import programs
from tests.integration.shared_control_plane import api, control_plane

__all__ = ["api", "control_plane", "programs"]
