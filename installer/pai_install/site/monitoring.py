"""How a site monitors its cluster. Pure."""

from __future__ import annotations

from pai_install.site.model import Site


def monitored_by(site: Site) -> int:
    """Returns the number of control planes that store metrics and send alerts, 0 without monitoring."""
    wanted = site.services.monitoring
    # The pods use ports of their machine, so each control plane takes one at most.
    return min(wanted.replicas, len(site.control_planes)) if wanted else 0


def has_gossip(site: Site) -> bool:
    """Whether Alertmanagers tell each other what they sent, and their silences."""
    return monitored_by(site) > 1
