"""Labels that pai-install puts on nodes."""

from __future__ import annotations

# The check for which `health --act cordon` took a node out of scheduling; a node without it was cordoned by a person.
CORDONED_BY_HEALTH = "pai-install/cordoned-by-health"
# The machine type with which a scheduler knows a node.
SKU = "pai-install/sku"
