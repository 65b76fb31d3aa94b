"""Values of the add-ons csi_*: where CSI drivers run. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.parts.context import Context
from pai_install.site import Site


def has_drivers(site: Site) -> bool:
    """Returns whether any storage of the site uses a driver of ours. `when` of each add-on selects the driver."""
    return bool(site.driven_storages)


def driver_values(context: Context) -> dict[str, Any]:
    """others: the control planes that run no jobs. Names, as a label would be gone before the driver may go."""
    return {
        "others": [
            machine.hostname for machine in context.site.machines if not machine.worker and machine.control_plane
        ]
    }
