"""Leftovers of an earlier cluster: interfaces, folders and packet filters of its pods."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.checks.result import Result, failed, passed, unknown, warned
from pai_install.preflight.evidence import Leftovers
from pai_install.preflight.model import Case, machine_check
from pai_install.system.words import shortened


@machine_check(
    id="leftovers",
    title="No leftovers of an earlier cluster on a machine that is not a node",
    reads="leftovers: interfaces, folders, nftables tables and iptables chains of pods, and pai-install's record",
    rule="FAIL for interfaces of pods or /etc/kubernetes/pki, WARN for anything else. UNKNOWN without root",
    remedy="run sudo kubeadm reset --force and reboot if you need nothing on the machine",
)
def leftovers(case: Case) -> Result | None:
    """No leftovers of an earlier cluster on a machine that is not a node."""
    seen = case.evidence.leftovers
    if case.evidence.installed:
        return passed(message="pai-install manages this machine, so none of this is a leftover")
    value = "; ".join(_lines(seen))
    if not value and seen.tables is None:
        return unknown("only root may read the kernel's packet filters")
    if not value:
        return passed(message="no leftovers of an earlier cluster")
    if seen.interfaces or "/etc/kubernetes/pki" in seen.folders:
        return failed(
            "leftovers of an earlier cluster would break kubeadm or new pods",
            value=value,
            expected="none",
            remedy=clean(seen),
        )
    return warned("leftovers of an earlier cluster", value=value, expected="none", remedy=clean(seen))


def _lines(seen: Leftovers) -> Iterator[str]:
    if seen.interfaces:
        yield f"interfaces {', '.join(seen.interfaces)}"
    yield from (f"{folder} is not empty" for folder in seen.folders)
    if seen.tables:
        yield f"nftables tables {', '.join(seen.tables)}"
    if seen.chains:
        yield f"iptables chains {shortened(seen.chains, 3)}"


def clean(seen: Leftovers) -> str:
    """The commands that remove the leftovers."""
    commands = [
        "sudo kubeadm reset --force (where kubeadm is installed)",
        *(f"sudo ip link delete {name}" for name in seen.interfaces),
        *(f"sudo rm -r {folder}" for folder in seen.folders),
        *(f"sudo nft delete table {name}" for name in seen.tables or ()),
        *(["sudo reboot (removes the iptables chains)"] if seen.chains else []),
    ]
    return f"run these commands if you need nothing on the machine: {', '.join(commands)}"
