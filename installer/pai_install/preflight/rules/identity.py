"""The identity of a machine: its name, and ids that must be unique."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.checks.result import Result, failed, passed, skipped, warned
from pai_install.checks.verdict import Verdict
from pai_install.preflight.evidence import MachineIdentity
from pai_install.preflight.model import Case, machine_check, own_interfaces
from pai_install.system.words import shortened

# Firmware without a UUID of its own shows one of these. Many machines have them, so they prove no copy.
_UNSET_UUIDS = {"", "00000000-0000-0000-0000-000000000000", "03000200-0400-0500-0006-000700080009"}
_RENEW = "run sudo rm /etc/machine-id && sudo systemd-machine-id-setup on this machine, and reboot"
# what to do about machines with one id
COPIED = f"{_RENEW} (the machines are copies of one image)"


@machine_check(
    id="hostname",
    title="The host name is the one in layout.yaml",
    reads="identity: host name",
    rule="FAIL when the first label of the host name is not hostname in layout.yaml",
    source="Kubernetes",
    remedy="run sudo hostnamectl set-hostname NAME on this machine, or correct layout.yaml",
)
def hostname(case: Case) -> Result | None:
    """The host name is the one in the layout."""
    seen, wanted = _identity(case).hostname, case.name
    # A machine may know its full name. Only the first part has to match.
    if seen.partition(".")[0].lower() == wanted.lower():
        return passed(seen, message="the host name is the one in layout.yaml")
    others = {machine.hostname.lower() for machine in case.site.machines}
    wrong = seen.lower() in others
    hint = f". {seen} is another machine of the site: two hostip in layout.yaml may be swapped" if wrong else ""
    return failed(
        f"the host name is {seen}, but {wanted} in layout.yaml",
        value=seen,
        expected=wanted,
        remedy=f"run sudo hostnamectl set-hostname {wanted} on this machine, or correct layout.yaml{hint}",
    )


@machine_check(
    id="hostname-unique",
    title="Host names are unique",
    reads="identity of all machines",
    rule="FAIL for each machine with a host name of another machine",
    source="kubeadm",
    remedy="run sudo hostnamectl set-hostname NAME on one of them",
)
def hostname_unique(case: Case) -> Result | None:
    """The host name is unique."""
    name = _identity(case).hostname.lower()
    return _unique(case, "host name", name, case.fleet.hostnames)


@machine_check(
    id="machine-id",
    title="Machine ids are unique",
    reads="identity of all machines: /etc/machine-id",
    rule="FAIL for each machine with the id of another machine, or without an id",
    source="kubeadm",
    remedy=COPIED,
)
def machine_id(case: Case) -> Result | None:
    """The machine id is unique: network and logs tell machines apart by it."""
    seen = _identity(case).machine_id
    if seen in ("", "uninitialized"):
        return failed("the machine has no machine id", value=seen, expected="32 hexadecimal digits", remedy=_RENEW)
    return _unique(case, "machine id", seen, case.fleet.machine_ids)


@machine_check(
    id="product-uuid",
    title="Hardware UUIDs are unique",
    reads="identity of all machines: /sys/class/dmi/id/product_uuid",
    rule="WARN for each machine with the UUID of another machine. SKIP in a container, without root, or without a UUID",
    source="kubeadm",
    remedy="give each virtual machine its own UUID, or have the vendor set UUIDs in the firmware",
)
def product_uuid(case: Case) -> Result | None:
    """The hardware UUID is unique."""
    identity = _identity(case)
    if identity.container:
        return skipped(f"a container ({identity.container}) shows the UUID of its host")
    seen = identity.product_uuid.lower()
    if seen in _UNSET_UUIDS:
        return skipped("only root may read it" if not identity.root else "the firmware has none")
    result = _unique(case, "hardware UUID", seen, case.fleet.product_uuids)
    if result.verdict is Verdict.FAIL:  # vendors ship series with one UUID; Kubernetes itself does not need it
        return warned(result.message, value=result.value, expected=result.expected)
    return result


@machine_check(
    id="address",
    title="An interface has the address hostip, and its MAC address is unique",
    reads="interfaces of all machines",
    rule="FAIL when no interface has hostip, or another machine has the same MAC address",
    source="Kubernetes",
    remedy="set hostip to an address of one of the machine's interfaces, not to a NAT address. etcd and the kubelet "
    "listen on it",
)
def address(case: Case) -> Result | None:
    """The machine has the address of the layout on an interface of its own, and a MAC address of its own."""
    wanted = case.machine.hostip
    interfaces = case.evidence.interfaces
    own = own_interfaces(case.machine, case.evidence)
    if not own:
        seen = ", ".join(word for interface in interfaces for word in interface.addresses)
        return failed(
            f"no interface has the address {wanted}",
            value=seen,
            expected=wanted,
        )
    result = _unique(case, "MAC address", own[0].mac, case.fleet.macs)
    if result.verdict is Verdict.FAIL:
        return result._replace(remedy="give each virtual machine its own MAC address")
    return passed(f"{wanted} at {own[0].name}, {own[0].mac}", message="address and MAC address are unique")


def _unique(case: Case, what: str, value: str, owners: Mapping[str, list[str]]) -> Result:
    others = [name for name in owners.get(value, ()) if name != case.name]
    if not others:
        return passed(value, message=f"no other machine has its {what}")
    return failed(f"{shortened(others)} has the same {what}", value=value, expected="a unique one")


def _identity(case: Case) -> MachineIdentity:
    return case.evidence.identity
