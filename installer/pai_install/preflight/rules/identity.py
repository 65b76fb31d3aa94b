"""Who the machine is: its name, and ids that no other machine may have."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.preflight.evidence import Identity
from pai_install.preflight.model import Case, Check, Ruling, failed, had, own_interfaces, passed, skipped, warned

_UNSET_UUIDS = {"", "00000000-0000-0000-0000-000000000000", "03000200-0400-0500-0006-000700080009"}
_RENEW = "on this machine: sudo rm /etc/machine-id && sudo systemd-machine-id-setup, then reboot"
# what to do about machines with one id
COPIED = f"they are copies of one image; {_RENEW}"


def hostname(case: Case) -> Ruling | None:
    """The machine calls itself as the layout does."""
    seen, wanted = _identity(case).hostname, case.name
    if seen.partition(".")[0].lower() == wanted.lower():
        return passed("it calls itself as the layout does", seen)
    others = {machine.hostname.lower() for machine in case.site.machines}
    wrong = seen.lower() in others
    hint = f"; {seen} is another machine of the site, so hostip may be exchanged in layout.yaml" if wrong else ""
    return failed(
        f"the machine calls itself {seen}, the layout {wanted}",
        value=seen,
        expected=wanted,
        remedy=f"sudo hostnamectl set-hostname {wanted} on this machine, or correct layout.yaml{hint}",
    )


def hostname_unique(case: Case) -> Ruling | None:
    """No other machine has its name."""
    name = _identity(case).hostname.lower()
    return _unique(case, "host name", name, case.fleet.hostnames, "sudo hostnamectl set-hostname NAME on one of them")


def machine_id(case: Case) -> Ruling | None:
    """No other machine has its machine id: network and logs tell machines apart by it."""
    seen = _identity(case).machine_id
    if seen in ("", "uninitialized"):
        return failed("the machine has no machine id", value=seen, expected="32 hexadecimal digits", remedy=_RENEW)
    return _unique(case, "machine id", seen, case.fleet.machine_ids, COPIED)


def product_uuid(case: Case) -> Ruling | None:
    """No other machine has the UUID of its hardware."""
    identity = _identity(case)
    if identity.container:
        return skipped(f"a container ({identity.container}) shows its host's")
    seen = identity.product_uuid.lower()
    if seen in _UNSET_UUIDS:
        return skipped("only root may read it" if not identity.root else "the firmware gives none")
    remedy = "give the virtual machines UUIDs of their own, or have the vendor set them in the firmware"
    ruling = _unique(case, "hardware UUID", seen, case.fleet.product_uuids, remedy)
    if ruling.remedy:  # vendors ship series with one UUID; Kubernetes itself does not need it
        return warned(ruling.message, value=ruling.value, expected=ruling.expected, remedy=ruling.remedy)
    return ruling


def address(case: Case) -> Ruling | None:
    """The machine has the address of the layout on an interface of its own, and shares its MAC with nobody."""
    wanted = case.machine.hostip
    interfaces = had(case.evidence.interfaces, "interfaces")
    own = own_interfaces(case.machine, case.evidence)
    if not own:
        seen = ", ".join(word for interface in interfaces for word in interface.addresses)
        return failed(
            f"no interface has the address {wanted}",
            value=seen,
            expected=wanted,
            remedy="write the machine's own address as hostip: what etcd and the kubelet listen on is not translated",
        )
    remedy = "give the network cards of virtual machines MAC addresses of their own"
    ruling = _unique(case, "MAC address", own[0].mac, case.fleet.macs, remedy)
    return (
        ruling if ruling.remedy else passed("it has its address to itself", f"{wanted} at {own[0].name}, {own[0].mac}")
    )


def _unique(case: Case, what: str, value: str, owners: Mapping[str, list[str]], remedy: str) -> Ruling:
    others = [name for name in owners.get(value, ()) if name != case.name]
    if not others:
        return passed(f"no other machine has its {what}", value)
    shown = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    return failed(f"{shown} has the same {what}", value=value, expected="one of its own", remedy=remedy)


def _identity(case: Case) -> Identity:
    return had(case.evidence.identity, "identity")


CHECKS = (
    Check("hostname", "The machine calls itself as layout.yaml does", hostname),
    Check("hostname-unique", "No two machines have one name", hostname_unique),
    Check("machine-id", "No two machines have one machine id", machine_id),
    Check("product-uuid", "No two machines have one hardware UUID", product_uuid),
    Check("address", "The address is the machine's own, and so is the MAC", address),
)
