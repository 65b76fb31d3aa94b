"""Readers of names and addresses: hosts, networks, web addresses, paths, labels and taints."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from pai_install.documents.scalars import invalid, read_text, shown

# what no web address holds unless it is written as %XX, and a % that begins none
_NO_URL = re.compile(r"""[\s"'<>\\^`{|}]|%(?![0-9A-Fa-f]{2})""")
# folders of the system, and those that hold others' files: never Docker's own
_SYSTEM_FOLDERS = (
    "/bin/", "/boot/", "/dev/", "/etc/", "/lib/", "/lib32/", "/lib64/", "/proc/", "/run/", "/sbin/", "/sys/", "/usr/",
    "/var/lib/containerd/", "/var/lib/etcd/", "/var/lib/kubelet/", "/var/lib/pai-install/", "/var/log/", "/var/run/",
)  # fmt: skip
_SHARED_FOLDERS = frozenset(f"/{name}" for name in ("", "home", "media", "opt", "root", "srv", "tmp", "var", "var/lib"))
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# what API servers start with; with anything else they would not start again
_ISSUER = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[A-Za-z0-9._~!$&'()*+,;=:@/-]*)?")
_CLUSTERS_ISSUER = "https://kubernetes.default.svc"
_LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_TAINT = re.compile(r"(?P<key>[^=:]+)(?:=(?P<value>[^=:]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)")

# what Docker Hub answers to beside its own name
_DOCKER_HUB = frozenset({"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"})

# flags of the kubelet that OpenPAI installed which the supported versions refuse
_REMOVED_FLAGS = frozenset({
    "allow-privileged", "cadvisor-port", "cni-bin-dir", "cni-cache-dir", "cni-conf-dir", "container-runtime",
    "docker-endpoint", "image-pull-progress-deadline", "network-plugin", "network-plugin-mtu",
})  # fmt: skip

_NEEDED = "Kubernetes needs it as pai-install sets it; remove it"
_KUBELETS = "the kubelet sets it again at its next start; remove it"
# Parameters that a site may not set, and what to do instead.
_RESERVED_PARAMETERS = {
    **dict.fromkeys(
        ("net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"), _NEEDED
    ),
    **dict.fromkeys(("kernel.panic", "kernel.panic_on_oops", "vm.overcommit_memory", "vm.panic_on_oom"), _KUBELETS),
    **dict.fromkeys(("kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes"), _KUBELETS),
    "net.ipv4.ip_local_port_range": "write host_daemon_port_start and host_daemon_port_end",
}


def read_host_name(value: object) -> str:
    """A name that Kubernetes takes for a node: RFC 1123, lower case."""
    word = read_text(value)
    if _HOST_NAME.fullmatch(word) and len(word) <= 253:
        if word in {"localhost", "localhost.localdomain"} or word.startswith("localhost."):
            raise invalid("hostname", f"{word} is the name of every machine", "give the machine a name of its own")
        return word
    if word != word.lower() and _HOST_NAME.fullmatch(word.lower()):
        raise invalid(
            "hostname",
            f"{shown(word)} has upper-case letters, which Kubernetes refuses",
            f"write {word.lower()}",
        )
    remedy = "use letters a-z, digits, and '-', with parts of up to 63 characters divided by '.'"
    if "_" in word and _HOST_NAME.fullmatch(word.lower().replace("_", "-")):
        remedy = f"rename it to {word.lower().replace('_', '-')}"
    raise invalid("hostname", f"{shown(word)} is not a name that Kubernetes takes for a machine", remedy)


def read_ip(value: object) -> str:
    """The IPv4 address of one machine."""
    word = read_text(value)
    try:
        address = ipaddress.IPv4Address(word)
    except ValueError:
        raise invalid("ip-address", f"{shown(word)} is not an IPv4 address", _ip_remedy(word)) from None
    # Loopback, multicast, and the like are valid addresses, but never those of one machine.
    if (
        address.is_loopback
        or address.is_multicast
        or address.is_unspecified
        or address == ipaddress.IPv4Address(2**32 - 1)
    ):
        raise invalid(
            "ip-address",
            f"{word} cannot be the address of a machine",
            "write its address on the cluster's network",
        )
    return word


def _ip_remedy(word: str) -> str:
    try:
        ipaddress.IPv6Address(word)
    except ValueError:
        pass
    else:
        return "IPv6 is not supported; write the machine's IPv4 address"
    if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", word):
        if any(len(part) > 1 and part.startswith("0") for part in word.split(".")):
            return "write the numbers without leading zeros"
        return "each of the four numbers is 0 to 255"
    return "an address looks like 10.0.0.1"


def read_cidr(value: object) -> str:
    """Reads an IPv4 network, such as 10.200.0.0/13. The address must be the network's own."""
    word = read_text(value)
    try:
        network = ipaddress.IPv4Network(word, strict=False)
    except ValueError:
        raise invalid("cidr", f"{shown(word)} is not an IPv4 network", "a network looks like 10.200.0.0/13") from None
    if "/" not in word:
        raise invalid("cidr", f"{shown(word)} has no prefix length", "a network looks like 10.200.0.0/13")
    if str(network.network_address) != word.partition("/")[0]:
        raise invalid("cidr", f"{shown(word)} is an address inside a network", f"write {network}")
    return str(network)


def read_url(value: object) -> str:
    """Reads an http or https address, and removes a final '/'."""
    word = read_text(value)
    try:
        parts = urlsplit(word)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and not _NO_URL.search(word)
        _ = parts.port  # raises for a port that is none
    except ValueError:
        good = False
    if not good:
        raise invalid("url", f"{shown(word)} is not a web address", "write it with http:// or https://")
    return word.rstrip("/")


def read_absolute_path(value: object) -> str:
    """A path on a machine, from the root."""
    word = read_text(value)
    if not word.startswith("/") or "\0" in word:
        raise invalid("path", f"{shown(word)} is not an absolute path", "write it from the root, e.g. /mnt/docker")
    if ".." in word.split("/"):
        raise invalid("path", f"{shown(word)} goes up again with ..", "write where it is, without ..")
    return re.sub("/+", "/", word).rstrip("/") or "/"


def read_data_root(value: object) -> str:
    """A folder that Docker may own: it changes the mode of the folder."""
    return _own_folder(value, "give Docker a folder of its own, e.g. /mnt/docker")


def read_containerd_root(value: object) -> str:
    """Reads a folder that containerd may own: its default, or a folder for containerd alone."""
    # The default lies among the system's folders, which are refused otherwise.
    if read_absolute_path(value) == "/var/lib/containerd":
        return "/var/lib/containerd"
    return _own_folder(value, "give containerd a folder of its own, e.g. /mnt/containerd")


def read_cache_folder(value: object) -> str:
    """Reads a folder that the registry cache may own: it deletes old content there."""
    return _own_folder(value, "give the cache a folder of its own, e.g. /mnt/docker-cache")


def read_storage_folder(value: object) -> str:
    """Reads a folder for jobs: they read and write everything below it."""
    return _own_folder(value, "give jobs a folder of their own, e.g. /share/data")


def read_volumes_folder(value: object) -> str:
    """A folder that is given away in parts, each to one claim."""
    return _own_folder(value, "give volumes a folder of their own, e.g. /mnt/volumes")


def _own_folder(value: object, remedy: str) -> str:
    path = read_absolute_path(value)
    # Both spellings count: the folder itself, and everything below it.
    if path in _SHARED_FOLDERS or path.startswith(_SYSTEM_FOLDERS) or f"{path}/" in _SYSTEM_FOLDERS:
        raise invalid("path", f"{shown(path)} is the system's", remedy)
    return path


def read_server(value: object) -> str:
    """A host by name or address, without a scheme."""
    word = read_text(value)
    try:
        ipaddress.ip_address(word)
    except ValueError:
        if not _HOST_NAME.fullmatch(word.lower()):
            raise invalid(
                "server", f"{shown(word)} is neither a host name nor an address", "no scheme, no path"
            ) from None
    return word


def read_label_key(value: object) -> str:
    """A Kubernetes label or taint key: [prefix/]name."""
    word = read_text(value)
    prefix, _, name = word.rpartition("/")
    if not _LABEL_NAME.fullmatch(name) or ("/" in word and not _HOST_NAME.fullmatch(prefix)):
        raise invalid("label", f"{shown(word)} is not a label key", "a key looks like team or example.com/team")
    return word


def read_label_value(value: object) -> str:
    """Reads a Kubernetes label value, which may be empty."""
    # Kubernetes takes an empty value for a label, but no empty key.
    word = "" if value is None else read_text(value)
    if word and not _LABEL_NAME.fullmatch(word):
        raise invalid("label", f"{shown(word)} is not a label value", "use up to 63 letters, digits, '-', '_' and '.'")
    return word


def read_taint(value: object) -> str:
    """A taint as kubectl takes it: key[=value]:Effect."""
    word = read_text(value)
    match = _TAINT.fullmatch(word)
    if match is None:
        raise invalid("taint", f"{shown(word)} is not a taint", "a taint looks like dedicated=training:NoSchedule")
    read_label_key(match["key"])
    read_label_value(match["value"] or "")
    return word


def read_user_name(value: object) -> str:
    """Reads a user name. Refuses options of ssh."""
    word = read_text(value)
    if not re.fullmatch(r"[A-Za-z0-9._][A-Za-z0-9._@\\$+-]{0,127}", word):
        raise invalid("user", f"{shown(word)} is not a user name", "write the name of an account on the machines")
    return word


def read_resource(value: object) -> str:
    """The resource name of a device plugin, e.g. nvidia.com/gpu."""
    word = read_text(value)
    prefix, _, name = word.rpartition("/")
    if not _LABEL_NAME.fullmatch(name) or not _HOST_NAME.fullmatch(prefix):
        remedy = "write what the device plugin registers, e.g. nvidia.com/gpu, amd.com/gpu"
        raise invalid("device-type", f"{shown(word)} is not the resource name of a device plugin", remedy)
    return word


def read_registry(value: object) -> str:
    """A registry as Docker's insecure-registries takes it: host, host:port or a network, no scheme."""
    word = read_text(value)
    if "://" in word:
        remedy = f"write {shown(word.partition('://')[2].rstrip('/'))}"
        raise invalid("registry", f"{shown(word)} has a scheme, which Docker refuses here", remedy)
    host, colon, port = word.partition(":")
    good = _HOST_NAME.fullmatch(host.lower()) and (not colon or re.fullmatch(r"[1-9][0-9]{0,4}", port))
    if not good and not _is_network(word):
        raise invalid("registry", f"{shown(word)} is not a registry", "write host or host:port, without a path")
    return word


def read_registry_host(value: object) -> str:
    """Reads a registry in the form of image names: host or host:port, lower case. Docker Hub is docker.io."""
    word = read_registry(value)
    host, colon, port = word.partition(":")
    if "/" in word or (colon and int(port) > 65535):
        raise invalid("registry", f"{shown(word)} is not a registry", "write host or host:port, without a path")
    if host in _DOCKER_HUB:
        raise invalid("registry", f"{word} is no part of an image's name", "write docker.io")
    if word != word.lower():
        raise invalid("registry", f"{shown(word)} has upper-case letters", f"write {word.lower()}")
    return word


def read_plain_url(value: object) -> str:
    """As read_url, without a login, a query or a fragment."""
    word = read_url(value)
    parts = urlsplit(word)
    if parts.username or parts.password:
        raise invalid("url", f"{shown(word)} has a login in it", "write username and password beside it")
    if parts.query or parts.fragment:
        raise invalid("url", f"{shown(word)} has more than an address", "write it without ? and #")
    return word


def read_issuer(value: object) -> str:
    """Reads a token issuer's name (OpenID Connect), which is its address. A final '/' is part of the name."""
    word = read_text(value)
    read_url(word)
    if not _ISSUER.fullmatch(word):
        message = f"{shown(word)} is not the name of an issuer"
        raise invalid("issuer", message, "write https://, host and path alone, as its tokens say in `iss`")
    if word.startswith(_CLUSTERS_ISSUER):
        raise invalid("issuer", f"{word} is the cluster itself", "write the issuer of your directory")
    return word


def _is_network(word: str) -> bool:
    try:
        ipaddress.IPv4Network(word, strict=False)
    except ValueError:
        return False
    return True


def read_no_proxy(value: object) -> str:
    """Reads exceptions from the proxy: names, addresses, and networks, separated by commas."""
    word = read_text(value)
    if not re.fullmatch(r"[A-Za-z0-9._:/*\[\], -]*", word):
        raise invalid("no-proxy", f"{shown(word)} is no list of hosts", "write hosts and networks, divided by commas")
    return word


def read_flag_value(value: object) -> str:
    """The value of a kubelet flag: one word."""
    word = read_text(value)
    if re.search(r"[\s\"'\\`$]", word):
        raise invalid("flag", f"{shown(word)} is not the value of one flag", "write each flag with a line of its own")
    return word


def read_flag_name(value: object) -> str:
    """The name of a kubelet flag, without its dashes."""
    word = read_text(value)
    if not re.fullmatch(r"[a-z][a-z0-9-]*", word):
        raise invalid("flag", f"{shown(word)} is not the name of a flag", "write it without leading dashes")
    if word in _REMOVED_FLAGS:
        raise invalid("flag", f"the kubelet no longer has --{word} and would not start", "remove it")
    return word


def read_kernel_parameter(value: object) -> str:
    """The name of a kernel parameter as sysctl writes it: dots between its parts, a slash for a dot within one."""
    word = read_text(value)
    if not re.fullmatch(r"[a-z0-9_]+(\.[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)+", word):
        raise invalid("kernel-parameter", f"{shown(word)} is not a kernel parameter", "for example net.core.rmem_max")
    if word in _RESERVED_PARAMETERS:
        raise invalid("kernel-parameter", f"a site cannot set {word}", _RESERVED_PARAMETERS[word])
    return word
