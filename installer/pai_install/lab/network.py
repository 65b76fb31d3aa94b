"""The lab's network: a bridge with the box's address, a namespace and a veth pair per machine, a NAT rule."""

from __future__ import annotations

import shutil
from pathlib import Path

from pai_install.lab.names import lab_names, machine_names
from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.proc import run


def bridge_batch(spec: LabSpec) -> str:
    """Commands for `ip -batch` that make the bridge."""
    name = lab_names(spec).bridge
    return (
        f"link add {name} type bridge stp_state 0\n"
        f"addr add {spec.gateway}/{spec.subnet.prefixlen} dev {name}\n"
        f"link set {name} up\n"
    )


def veth_batch(spec: LabSpec, machine: LabMachine) -> str:
    """Commands for `ip -batch` that plug a machine's eth0 into the bridge."""
    names = machine_names(spec, machine)
    bridge = lab_names(spec).bridge
    return (
        f"link add {names.veth} type veth peer name eth0 netns {names.netns}\n"
        f"link set {names.veth} master {bridge} up\n"
    )


def inside_batch(spec: LabSpec, machine: LabMachine) -> str:
    """Commands for `ip -netns ... -batch` that give the machine its address."""
    return (
        "link set lo up\n"
        f"addr add {machine.address}/{spec.subnet.prefixlen} dev eth0\n"
        "link set eth0 up\n"
        f"route add default via {spec.gateway}\n"
    )


def nat_rules(spec: LabSpec) -> str:
    """Returns the nftables table for the machines' outbound traffic, with a name that only this lab uses.

    Before kube-proxy runs, a machine sends packets for Services and pods to its gateway. The table drops them.
    """
    names = lab_names(spec)
    inside = [f'iifname "{names.bridge}" ip daddr {network} reject' for network in spec.cluster_networks]
    kept_in = "".join(f"    {rule}\n" for rule in inside)
    return f"""table ip {names.nft_table} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {spec.subnet} oifname != "{names.bridge}" masquerade
  }}
  chain forward {{
    type filter hook forward priority mangle; policy accept;
{kept_in}    iifname "{names.bridge}" tcp flags syn tcp option maxseg size set rt mtu
    oifname "{names.bridge}" tcp flags syn tcp option maxseg size set rt mtu
  }}
}}
"""


def forward_rules(bridge: str) -> tuple[list[str], ...]:
    """Returns arguments of `iptables` after -I, -C, or -D, for a host that drops forwarded packets because
    of Docker.
    """
    return (["FORWARD", "-i", bridge, "-j", "ACCEPT"], ["FORWARD", "-o", bridge, "-j", "ACCEPT"])


def has_link(name: str) -> bool:
    """Whether the box has an interface of that name."""
    return Path("/sys/class/net", name).exists()


def has_netns(name: str) -> bool:
    """Whether a named network namespace exists."""
    return Path("/run/netns", name).exists()


def has_table(name: str) -> bool:
    """Whether nftables has the table."""
    return run(["nft", "list", "table", "ip", name], check=False).ok


def drops_forwarded() -> bool:
    """Whether the box's filter drops forwarded packets by default."""
    if shutil.which("iptables") is None:
        return False
    return "-P FORWARD DROP" in run(["iptables", "-w", "-S", "FORWARD"], check=False).stdout


def ensure_bridge(spec: LabSpec) -> bool:
    """Creates the bridge. Returns False if it existed."""
    if has_link(lab_names(spec).bridge):
        return False
    run(["ip", "-batch", "-"], stdin=bridge_batch(spec))
    return True


def ensure_nat(spec: LabSpec) -> bool:
    """Creates the NAT table. Returns False if it existed."""
    if has_table(lab_names(spec).nft_table):
        return False
    run(["nft", "-f", "-"], stdin=nat_rules(spec))
    return True


def ensure_forward_rules(spec: LabSpec) -> bool:
    """Accepts forwarded packets of the bridge. Returns False if the rules existed."""
    missing = [
        rule
        for rule in forward_rules(lab_names(spec).bridge)
        if not run(["iptables", "-w", "-C", *rule], check=False).ok
    ]
    for rule in missing:
        run(["iptables", "-w", "-I", *rule])
    return bool(missing)


def ensure_link(spec: LabSpec, machine: LabMachine) -> bool:
    """Creates a machine's namespace and veth pair. Returns False if both existed."""
    names = machine_names(spec, machine)
    if has_netns(names.netns) and has_link(names.veth):
        return False
    if not has_netns(names.netns):
        run(["ip", "netns", "add", names.netns])
    if not has_link(names.veth):
        run(["ip", "-batch", "-"], stdin=veth_batch(spec, machine))
        run(["ip", "-netns", names.netns, "-batch", "-"], stdin=inside_batch(spec, machine))
    return True


def delete_link(veth: str) -> bool:
    """Deletes the host's end of a veth pair, or a bridge. Returns False if it was missing."""
    return has_link(veth) and run(["ip", "link", "delete", veth]).ok


def delete_netns(netns: str) -> bool:
    """Deletes a machine's namespace with its interfaces, routes, and rules. Returns False if it was missing."""
    return has_netns(netns) and run(["ip", "netns", "delete", netns]).ok
