"""How ssh is called: the same settings for Ansible and for our own connections."""

from __future__ import annotations

from pathlib import Path


def host_key_options(known_hosts: Path, *, accept_new: bool) -> tuple[str, ...]:
    """Options that check host keys against the site's own list, and end connections that no longer answer.

    accept_new: take the key of a machine that the list does not have.
    """
    return (
        f'UserKnownHostsFile="{known_hosts}"',
        f"StrictHostKeyChecking={'accept-new' if accept_new else 'yes'}",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=4",
    )


def sharing_options(minutes: int) -> tuple[str, ...]:
    """Options by which calls share one connection, which stays open so long after the last."""
    return ("ControlMaster=auto", f"ControlPersist={minutes}m")
