"""How ssh is called: the same settings for Ansible and for our own connections."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pai_install.system.state_file import MISSING, reading

# host, type, key: no option
_HOST_KEY = re.compile(r"[A-Za-z0-9.,:|=+/\[\]-]+ (ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\n]*)?")
# they name an authority, or take a key back
_MARKER = re.compile(r"@(cert-authority|revoked) +")


def host_key_options(known_hosts: Path, *, accept_new: bool) -> tuple[str, ...]:
    """Options that check host keys against the site's own list, and end connections that no longer answer.

    accept_new: take the key of a machine that the list does not have. Raises PaiError for a damaged list: ssh would
    skip its lines without a word.
    """
    require_host_keys(known_hosts)
    return (
        f'UserKnownHostsFile="{known_hosts}"',
        f"StrictHostKeyChecking={'accept-new' if accept_new else 'yes'}",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=4",
    )


def sharing_options(minutes: int) -> tuple[str, ...]:
    """Options by which calls share one connection, which stays open so long after the last."""
    return ("ControlMaster=auto", f"ControlPersist={minutes}m")


def require_host_keys(known_hosts: Path) -> None:
    """Raises PaiError if the list has a line that is no host key, or cannot be read."""
    remedy = "remove the damaged line, then run again with --accept-new"
    try:
        with reading(known_hosts, remedy):
            number = strange_line(known_hosts.read_text(encoding="utf-8").splitlines(), markers=True)
            if number:
                raise ValueError(f"line {number} is no host key")
    except MISSING:
        return


def strange_line(lines: Iterable[str], *, markers: bool) -> int:
    """Returns the number of the first line that is no host key, or 0. markers: take lines with a marker."""
    for number, line in enumerate(lines, start=1):
        key = _MARKER.sub("", line, count=1) if markers else line
        if key.strip() and not key.startswith("#") and not _HOST_KEY.fullmatch(key):
            return number
    return 0
