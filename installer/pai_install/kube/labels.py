"""Labels that pai-install puts on nodes."""

from __future__ import annotations

# The check for which `health --act cordon` took a node out of scheduling; a node without it was cordoned by a person.
CORDONED_BY_HEALTH = "pai-install/cordoned-by-health"
# An upgrade took the node out of scheduling and puts it back; without the label, whoever cordoned it wants it so.
CORDONED_BY_UPGRADE = "pai-install/cordoned-by-upgrade"
# A reboot took the node out of scheduling and puts it back; as above.
CORDONED_BY_REBOOT = "pai-install/cordoned-by-reboot"
# The boot that `node reboot` is to end, until all machines of the command are through: the next one goes on by it.
BOOT_TO_END = "pai-install/boot-to-end"
# The machine type with which a scheduler knows a node.
SKU = "pai-install/sku"
