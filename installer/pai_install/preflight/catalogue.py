"""Every check of preflight: of machines, of the way to them, and of the controller host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_install.checks.check import Check, unique
from pai_install.preflight.contact import CONTACT_CHECKS
from pai_install.preflight.rules import CHECKS
from pai_install.preflight.source import COMPONENT_SOURCE

CATALOGUE: Mapping[str, Check[Any]] = {
    check.id: check for check in unique((COMPONENT_SOURCE, *CONTACT_CHECKS.values(), *CHECKS))
}
