"""The sites and components of the planner's tests."""

from __future__ import annotations

from tests.unit.plan.conftest import components, context, inventory, make_site, site

__all__ = ["components", "context", "inventory", "make_site", "site"]
