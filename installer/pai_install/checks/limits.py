"""Thresholds: numbers with their origins, per product, with overrides per SKU or site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.errors import ExitCode, PaiError


@dataclass(frozen=True, slots=True)
class Limit:
    """One threshold."""

    value: float
    source: str


@dataclass(frozen=True)
class Limits:
    """The thresholds of one run. The order of precedence is SKU, site, product, default."""

    defaults: Mapping[str, Limit]
    products: tuple[tuple[re.Pattern[str], Mapping[str, Limit]], ...] = ()
    site: Mapping[str, Limit] = field(default_factory=dict)
    skus: Mapping[str, Mapping[str, Limit]] = field(default_factory=dict)

    def get(self, name: str, *, sku: str = "", product: str = "") -> Limit | None:
        """The threshold `name` for that hardware, or None without one."""
        for layer in (self.skus.get(sku, {}), self.site):
            if name in layer:
                return layer[name]
        for pattern, layer in self.products:
            if name in layer and product and pattern.search(product):
                return layer[name]
        return self.defaults.get(name)

    def number(self, name: str, *, sku: str = "", product: str = "") -> float:
        """The number of a threshold that has a default."""
        limit = self.get(name, sku=sku, product=product)
        assert limit is not None, name  # noqa: S101 - a check names a threshold that thresholds.yml lacks: a bug
        return limit.value

    def overridden(self, site: Mapping[str, Any]) -> Limits:
        """These limits with a site's own: {"thresholds": {name: number}, "skus": {sku: {name: number}}}.

        Raises PaiError for a name that does not exist or a value that is not a number.
        """
        skus = site.get("skus") or {}
        return Limits(
            self.defaults,
            self.products,
            self._own(site.get("thresholds") or {}, "thresholds"),
            {str(sku): self._own(values, f"skus.{sku}") for sku, values in skus.items()},
        )

    def _own(self, values: Mapping[str, Any], where: str) -> dict[str, Limit]:
        known = set(self.defaults) | {name for _, layer in self.products for name in layer}
        found = {}
        for name, value in values.items():
            if name not in known:
                raise PaiError(
                    f"cannot read {where}: there is no health threshold {name!r}",
                    code="unknown-health-threshold",
                    remedy="choose a name from docs/health.md",
                    exit_code=ExitCode.SITE_INVALID,
                )
            # Python's booleans are integers: `true` would become the limit 1.
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise PaiError(
                    f"cannot read {where}.{name}: {value!r} is not a number",
                    code="health-threshold-not-a-number",
                    exit_code=ExitCode.SITE_INVALID,
                )
            found[str(name)] = Limit(float(value), f"site, {where}")
        return found
