"""Fixtures of this room: the planner's site and its machines."""

from __future__ import annotations

from tests.unit.plan.conftest import components, context, inventory, make_site, site

__all__ = ["components", "context", "inventory", "make_site", "site"]
