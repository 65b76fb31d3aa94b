"""Evidence of the network: addresses, routes, who listens, names, firewall, proxies, the way to other machines."""

from __future__ import annotations

import errno
import glob
import ipaddress
import json
import os
import re
import socket
import struct
from typing import Any

from ansible.module_utils.pai_machine import PROGRAM_MISSING, command, read
from ansible.module_utils.pai_parallel import in_parallel
from ansible.module_utils.pai_probe import active_units, names_in, without_login

RESOLV_CONF = "/etc/resolv.conf"
RESOLVED_CONF = "/run/systemd/resolve/resolv.conf"
MTU_DISCOVER, MTU_DISCOVER_DO = 10, 2  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: Python has no names for them
CONNECT_TIMEOUT = 3.0
ANSWER_TIMEOUT = 1.0
TRACE_PORT = 33435  # nothing listens there: a datagram that arrives is answered by ICMP


def interfaces() -> list[dict[str, Any]]:
    """Name, MAC, MTU and IPv4 addresses of each interface but the loopback one.

    Not from /sys/class/net: in a container that may show the host's.
    """
    status, text = command(["ip", "-json", "address", "show"])
    if status != 0:
        raise OSError("ip -json address show failed")
    return [interface(entry) for entry in json.loads(text or "[]") if entry.get("link_type") != "loopback"]


def interface(entry: dict[str, Any]) -> dict[str, Any]:
    """Parses one interface from the output of ip."""
    return {
        "name": entry.get("ifname", ""),
        "mac": entry.get("address", ""),
        "mtu": entry.get("mtu"),
        "addresses": [
            f"{info['local']}/{info['prefixlen']}"
            for info in entry.get("addr_info", [])
            if info.get("family") == "inet"
        ],
    }


def routes() -> list[dict[str, str]]:
    """IPv4 routes of the main table: network, interface."""
    found = []
    for line in read("/proc/net/route").splitlines()[1:]:
        words = line.split()
        # Bit 1 of the flags is RTF_UP. Routes that are down tell nothing about reachable networks.
        if len(words) > 7 and int(words[3], 16) & 1:
            # The kernel prints addresses in the byte order of the machine, which is little-endian on amd64 and arm64.
            target, mask = (socket.inet_ntoa(struct.pack("<L", int(words[index], 16))) for index in (1, 7))
            network = ipaddress.IPv4Network(f"{target}/{mask}", strict=False)
            found.append({"network": str(network), "interface": words[0]})
    return found


def listeners() -> list[dict[str, Any]]:
    """Who listens: protocol, address, port, program. program is empty where only root may know."""
    sockets: dict[str, dict[str, Any]] = {}
    for protocol, path in (("tcp", "tcp"), ("tcp", "tcp6"), ("udp", "udp"), ("udp", "udp6")):
        for line in read("/proc/net/" + path, 1 << 24).splitlines()[1:]:
            words = line.split()
            # 0A is the state LISTEN. UDP has no such state: an unconnected socket has 07.
            if words[3] == ("0A" if protocol == "tcp" else "07"):
                address, _, port = words[1].rpartition(":")
                # Several sockets may listen on one port (SO_REUSEPORT), so the inode is part of the key.
                sockets[f"{path}-{words[1]}-{words[9]}"] = {
                    "protocol": protocol,
                    "address": readable(address),
                    "port": int(port, 16),
                    "inode": words[9],
                }
    owners = socket_owners({entry["inode"] for entry in sockets.values()})
    return [
        {**{key: entry[key] for key in ("protocol", "address", "port")}, "program": owners.get(entry["inode"], "")}
        for entry in sockets.values()
    ]


def readable(address: str) -> str:
    """An address of /proc/net/tcp or tcp6 in the usual form."""
    words = [int(address[start : start + 8], 16) for start in range(0, len(address), 8)]
    packed = struct.pack("=%dL" % len(words), *words)
    return str(ipaddress.ip_address(packed))


def socket_owners(inodes: set[str]) -> dict[str, str]:
    """Inode of a socket -> name and id of the process that holds it."""
    found: dict[str, str] = {}
    for process in names_in("/proc"):
        if not process.isdigit():
            continue
        for descriptor in names_in(f"/proc/{process}/fd"):
            try:
                target = os.readlink(f"/proc/{process}/fd/{descriptor}")
            except OSError:
                continue
            if target.startswith("socket:[") and target[8:-1] in inodes:
                # Children inherit sockets. The process with the first number is usually the parent.
                found.setdefault(target[8:-1], f"{program(process)} ({process})")
    return found


def program(process: str) -> str:
    """The program of a process, by its command line: the kernel cuts its own name for it to 15 characters."""
    first = read(f"/proc/{process}/cmdline").split("\0")[0]
    name: str = os.path.basename(first.split(" ")[0].rstrip(":"))
    return name or str(read(f"/proc/{process}/comm"))


def names(kubelet_file: str) -> dict[str, Any]:
    """Returns resolvers of the machine and, with systemd-resolved, of its upstream file.

    kubelet_file: resolv.conf of the kubelet from the site. Empty: kubeadm chooses.
    """
    files = [path for path in (RESOLV_CONF, RESOLVED_CONF, kubelet_file) if path]
    return {
        "files": {path: nameservers(path) for path in files if os.path.exists(path)},
        "resolved": bool(active_units(["systemd-resolved"])),
    }


def nameservers(path: str) -> list[str]:
    """The resolvers in one file, in order."""
    return re.findall(r"^\s*nameserver\s+(\S+)", read(path), re.MULTILINE)


def firewall() -> dict[str, Any]:
    """Returns the filters of incoming packets: ufw, firewalld, kernel chains with policy drop."""
    return {
        "ufw": bool(re.search(r"^ENABLED=yes", read("/etc/ufw/ufw.conf"), re.MULTILINE)),
        "firewalld": bool(active_units(["firewalld"])),
        "chains": kernel_chains(),
    }


def kernel_chains() -> list[str] | None:
    """Returns kernel chains for incoming packets with policy drop, or None without root permissions.

    Reads a filter only if it is loaded, because reading would load it.
    """
    chains = []
    if os.path.isdir("/sys/module/nf_tables"):
        status, output = command(["nft", "list", "chains"])
        if status not in (0, PROGRAM_MISSING):
            return None
        chains = ["nftables " + name for name in dropping_chains(output)]
    if "filter" in read("/proc/net/ip_tables_names").split():
        policy = command(["iptables-legacy", "--list-rules", "INPUT"])[1]
        chains += ["iptables INPUT"] if re.search(r"^-P INPUT DROP", policy, re.MULTILINE) else []
    return chains


def dropping_chains(text: str) -> list[str]:
    """Chains of `nft list chains` that filter incoming packets and drop by default, as TABLE CHAIN."""
    found, table, chain = [], "", ""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["table"]:
            table = " ".join(words[1:3])
        elif words[:1] == ["chain"]:
            chain = words[1]
        elif "hook input" in line and "policy drop" in line:
            found.append(f"{table} {chain}")
    return found


def proxies() -> dict[str, str]:
    """Proxy settings that programs on this machine see: where -> URL, logins left out."""
    found = {}
    for path in ["/etc/environment", *sorted(glob.glob("/etc/profile.d/*.sh"))]:
        for name, url in re.findall(r"^\s*(?:export\s+)?(https?_proxy)=[\"']?([^\"'\s]+)", read(path), re.M | re.I):
            found[f"{path} {name}"] = without_login(url)
    for path in ["/etc/apt/apt.conf", *sorted(glob.glob("/etc/apt/apt.conf.d/*"))]:
        for name, url in re.findall(r"^\s*Acquire::(https?)::Proxy\s+\"([^\"]+)\"", read(path), re.M | re.I):
            found[f"{path} {name}"] = without_login(url)
    return found


def package_sources() -> dict[str, str]:
    """HOST:PORT of each package source (or of apt's proxy) -> why it cannot be reached, empty when it can."""
    proxy = [url for where, url in proxies().items() if where.startswith("/etc/apt/") and "://" in url]
    files = ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list")]
    lines = "\n".join(re.findall(r"^\s*deb\s.*$", "\n".join(read(path) for path in files), re.MULTILINE))
    stanzas = "\n".join(read(path) for path in glob.glob("/etc/apt/sources.list.d/*.sources"))
    listed = "\n".join(re.findall(r"^(?:URIs:|\s+https?:).*$", stanzas, re.MULTILINE | re.IGNORECASE))
    # With a proxy, apt connects to nothing else. The names of its sources may not even resolve then.
    urls = proxy or re.findall(r"https?://\S+", lines + "\n" + listed)
    # A machine with many sources must not use up the time of the whole probe.
    servers = sorted({server for url in urls for server in server_of(url)})[:6]
    return dict(in_parallel(lambda server: (server, connect_problem(*split(server))), servers))


def server_of(url: str) -> list[str]:
    """Returns [HOST:PORT] of a URL, or [] without a host."""
    found = re.match(r"(https?)://(?:[^/@]*@)?([^/:\s]+)(?::(\d+))?", url)
    if not found:
        return []
    return [f"{found.group(2)}:{found.group(3) or {'http': 80, 'https': 443}[found.group(1)]}"]


def split(server: str) -> tuple[str, int]:
    """Host and port of HOST:PORT."""
    host, _, port = server.rpartition(":")
    return host, int(port)


def connect_problem(host: str, port: int) -> str:
    """Returns why a TCP connection fails, or ""."""
    try:
        socket.create_connection((host, port), timeout=CONNECT_TIMEOUT).close()
    except OSError as error:
        return str(error) or type(error).__name__
    return ""


def servers(addresses: list[str]) -> dict[str, str]:
    """HOST:PORT -> why it cannot be reached, empty when it can."""
    return dict(in_parallel(lambda server: (server, connect_problem(*split(server))), addresses))


def peers(wanted: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Probes ports and packet sizes of other machines, for each {name, address, source, mtu, tcp: [ports]}.

    A refused connection is a success: packets reached the machine and returned.
    """
    return dict(in_parallel(lambda peer: (peer["name"], peer_answers(peer)), wanted))


def peer_answers(peer: dict[str, Any]) -> dict[str, Any]:
    """tcp: port -> open, refused, silent or rejected. small, large: whether a datagram of that size arrived."""
    address = peer["address"]
    # A silent port costs the whole timeout. One after the other, a firewall would take minutes.
    ports = in_parallel(lambda port: (str(port), tcp_answer(address, int(port))), peer["tcp"])
    small = datagram_answer(address, 64)
    size = path_mtu(address)
    # 28 bytes are the headers of IPv4 and UDP. A network with a smaller MTU drops this packet, and TCP hangs later.
    large = datagram_answer(address, size - 28) if small and size else None
    return {"tcp": dict(ports), "small": small, "large": large, "size": size}


def tcp_answer(address: str, port: int) -> str:
    """How a connection attempt ends."""
    try:
        socket.create_connection((address, port), timeout=CONNECT_TIMEOUT).close()
    except ConnectionRefusedError:
        return "refused"
    except OSError as error:
        # A firewall with REJECT answers by ICMP at once. One with DROP is silent.
        rejected = error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM)
        return "rejected" if rejected else "silent"
    return "open"


def path_mtu(address: str) -> int:
    """MTU of the interface towards an address, 0 when it is not known."""
    handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        handle.setsockopt(socket.IPPROTO_IP, MTU_DISCOVER, MTU_DISCOVER_DO)
        handle.connect((address, TRACE_PORT))
        return handle.getsockopt(socket.IPPROTO_IP, 14)  # IP_MTU
    except OSError:
        return 0
    finally:
        handle.close()


def datagram_answer(address: str, size: int) -> bool:
    """Whether an unfragmented datagram of `size` bytes arrives: the other kernel answers that the port is closed."""
    handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        handle.setsockopt(socket.IPPROTO_IP, MTU_DISCOVER, MTU_DISCOVER_DO)
        handle.settimeout(ANSWER_TIMEOUT)
        handle.connect((address, TRACE_PORT))
        # The first datagram may be lost while the kernel still asks for the MAC address.
        for _attempt in range(2):
            try:
                handle.send(b"\0" * size)
                handle.recv(1)
            except ConnectionRefusedError:
                return True
            except OSError:
                continue
        return False
    finally:
        handle.close()
