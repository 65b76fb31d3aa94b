"""The probes as they run on a machine: what they read, that they end in time, and that they leave no trace."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.preflight.evidence import PreflightEvidence, parse_evidence
from tests.ansible_path import module_util


@pytest.fixture
def probe() -> Any:
    return module_util("pai_probe")


@pytest.fixture
def machine() -> Any:
    return module_util("pai_probe_machine")


@pytest.fixture
def network() -> Any:
    return module_util("pai_probe_network")


@pytest.fixture
def leftover() -> Any:
    return module_util("pai_probe_leftovers")


def test_a_probe_that_fails_or_hangs_costs_only_itself(probe: Any) -> None:
    never = threading.Event()

    def broken() -> None:
        raise OSError("no such thing")

    began = time.monotonic()
    found, problems = probe.gather({"good": lambda: 1, "broken": broken, "hanging": never.wait}, 1.2)
    assert found == {"good": 1}
    assert problems == {"broken": "OSError: no such thing", "hanging": "no answer within 1.2 s"}
    assert time.monotonic() - began < 20
    never.set()


def test_logins_never_leave_the_machine(probe: Any) -> None:
    assert probe.without_login("http://me:word@proxy:3128/x") == "http://proxy:3128/x"
    assert probe.without_login("http://proxy:3128") == "http://proxy:3128"


def test_reading_what_is_not_there(probe: Any, tmp_path: Path) -> None:
    assert module_util("pai_machine").read(str(tmp_path / "none")) == ""
    assert probe.names_in(str(tmp_path / "none")) == []
    assert (probe.number("12"), probe.number("x")) == (12, None)


def test_everything_on_this_box_is_evidence(machine: Any, network: Any, leftover: Any, probe: Any) -> None:
    """The shape that the modules give is the shape that the verdicts read, part by part."""
    probes = {
        "identity": machine.identity,
        "system": machine.system,
        "hardware": machine.hardware,
        "mounts": lambda: machine.mounts(["/", "/var/lib/containerd"]),
        "swap": machine.swap,
        "time": machine.timekeeping,
        "modules": lambda: machine.kernel_modules(["overlay", "no_such_module"]),
        "cgroups": machine.cgroups,
        "packages": machine.packages,
        "docker": machine.docker,
        "devices": machine.devices,
        "kubernetes": machine.kubernetes,
        "leftovers": leftover.leftovers,
        "routes": network.routes,
        "listeners": network.listeners,
        "names": lambda: network.names(""),
        "firewall": network.firewall,
        "proxies": network.proxies,
        "servers": lambda: network.servers([]),
        "peers": lambda: network.peers([]),
        "exports": lambda: module_util("pai_nfs").exports([{"server": "127.0.0.1", "path": "/x", "port": 1}]),
    }
    found, problems = probe.gather(probes, 30)
    assert problems == {}
    evidence = parse_evidence(found)
    assert evidence.problems == {}
    for name in probes:
        assert getattr(evidence, name) is not None, name
        for field in _fields(found[name]):
            assert field in _known(name), f"{name}.{field} is gathered and read by nobody"


def _fields(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else {key for entry in value for key in entry}


def _known(part: str) -> set[str]:
    annotation = PreflightEvidence.model_fields[part].annotation
    for inner in (annotation, *getattr(annotation, "__args__", ())):
        for model in (inner, *getattr(inner, "__args__", ())):
            if hasattr(model, "model_fields"):
                return set(model.model_fields)
    return set(_Anything())


class _Anything(set[str]):
    """A mapping whose keys are names of things."""

    def __contains__(self, _item: object) -> bool:
        return True


def test_a_missing_folder_is_measured_where_it_would_be(machine: Any, tmp_path: Path) -> None:
    assert machine.existing(str(tmp_path / "not" / "yet")) == str(tmp_path)
    [found] = machine.mounts([str(tmp_path / "not" / "yet")])
    space = os.statvfs(tmp_path)
    assert found["total_bytes"] == space.f_blocks * space.f_frsize
    assert found["path"] == str(tmp_path / "not" / "yet")
    assert not (tmp_path / "not").exists()


def test_measuring_a_disk_leaves_no_trace(machine: Any, tmp_path: Path) -> None:
    before = tmp_path.stat().st_mtime_ns
    found = machine.write_latency(str(tmp_path), 0.1)
    assert found["samples"] == 0 or 0 < found["median_ms"] <= found["p99_ms"] <= found["max_ms"]
    assert list(tmp_path.iterdir()) == []
    assert tmp_path.stat().st_mtime_ns == before


def test_mount_of_the_deepest_one(machine: Any) -> None:
    table = [["/dev/a", "/", "ext4"], ["proc", "/proc", "proc"], ["/dev/b", "/pro", "xfs"]]
    assert machine.mount_of("/proc/1", table)["mount_point"] == "/proc"
    assert machine.mount_of("/", table)["filesystem"] == "ext4"


def test_addresses_of_the_kernel(network: Any) -> None:
    assert network.readable("0100007F") == "127.0.0.1"
    assert network.readable("00000000000000000000000001000000") == "::1"
    assert network.readable("0B501EAC") == "172.30.80.11"


@pytest.fixture
def listener() -> Iterator[int]:
    """A port of the controller host on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_listeners_are_found_with_their_program(network: Any, listener: int) -> None:
    [found] = [entry for entry in network.listeners() if entry["port"] == listener and entry["protocol"] == "tcp"]
    assert found["address"] == "127.0.0.1"
    assert found["program"].endswith(f"({os.getpid()})")


def test_answers_of_a_port(network: Any, listener: int) -> None:
    assert network.tcp_answer("127.0.0.1", listener) == "open"
    assert network.connect_problem("127.0.0.1", listener) == ""
    assert network.tcp_answer("127.0.0.1", 1) == "refused"
    assert "refused" in network.servers(["127.0.0.1:1"])["127.0.0.1:1"]


def test_a_datagram_is_answered_where_nobody_listens(network: Any) -> None:
    assert network.datagram_answer("127.0.0.1", 64) is True
    assert network.path_mtu("127.0.0.1") > 1400
    answers = network.peers([{"name": "me", "address": "127.0.0.1", "tcp": [1]}])
    assert answers["me"]["tcp"] == {"1": "refused"}
    assert answers["me"]["small"] is True


def test_a_datagram_that_somebody_takes_is_not_answered(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "ANSWER_TIMEOUT", 0.1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
        taker.bind(("127.0.0.1", 0))
        monkeypatch.setattr(network, "TRACE_PORT", taker.getsockname()[1])
        assert network.datagram_answer("127.0.0.1", 64) is False


NFT = """\
table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
	}
}
table ip kube-proxy {
	chain services {
	}
	chain nat-prerouting {
		type nat hook prerouting priority dstnat; policy accept;
	}
}
"""


def test_chains_that_drop_by_default(network: Any) -> None:
    assert network.dropping_chains(NFT) == ["inet filter input"]
    assert network.dropping_chains("") == []


@pytest.mark.parametrize(("status", "chains"), [(0, ["nftables inet filter input"]), (1, None), (127, [])])
def test_chains_that_only_root_may_see(
    network: Any, monkeypatch: pytest.MonkeyPatch, status: int, chains: list[str] | None
) -> None:
    monkeypatch.setattr(network.os.path, "isdir", lambda _path: True)
    monkeypatch.setattr(network, "read", lambda _path: "")
    monkeypatch.setattr(network, "command", lambda _argv: (status, "" if status else NFT))
    assert network.kernel_chains() == chains


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("http://deb.debian.org/debian", ["deb.debian.org:80"]),
        ("https://me:word@mirror.example:8443/x", ["mirror.example:8443"]),
        ("https://download.docker.com/linux", ["download.docker.com:443"]),
        ("file:/srv/packages", []),
        ("cdrom:[Debian]", []),
    ],
)
def test_servers_of_package_sources(network: Any, url: str, server: list[str]) -> None:
    assert network.server_of(url) == server


def test_interfaces_as_ip_tells_them(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = """[{"ifname":"lo","link_type":"loopback","mtu":65536},
      {"ifname":"eth0","link_type":"ether","address":"52:54:00:00:00:01","mtu":1500,"operstate":"UP",
       "addr_info":[{"family":"inet","local":"10.0.0.1","prefixlen":24},{"family":"inet6","local":"fe80::1"}]}]"""
    monkeypatch.setattr(network, "command", lambda _argv: (0, told))
    [found] = network.interfaces()
    assert found == {"name": "eth0", "mac": "52:54:00:00:00:01", "mtu": 1500, "addresses": ["10.0.0.1/24"]}
    monkeypatch.setattr(network, "command", lambda _argv: (127, ""))
    with pytest.raises(OSError, match="show failed"):
        network.interfaces()


def test_swap_that_would_come_back(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/etc/fstab": "UUID=1 / ext4 defaults 0 1\n# /old none swap sw 0 0\n/swapfile none swap sw 0 0\n",
        "/proc/swaps": "Filename Type Size Used Priority\n/dev/sda3 partition 1 0 -2\n",
        "/etc/systemd/zram-generator.conf": "# nothing here\n",
        "/usr/lib/systemd/zram-generator.conf": "[zram0]\n",
    }
    units = "dev-sda3.swap loaded active active Swap\nold.swap masked inactive dead Old\n"
    monkeypatch.setattr(machine, "read", lambda path: files.get(path, "").strip())
    monkeypatch.setattr(machine, "command", lambda _argv: (0, units))
    monkeypatch.setattr(machine, "active_units", lambda _units: [])
    monkeypatch.setattr(machine.glob, "glob", lambda _pattern: [])
    assert machine.swap() == {
        "active": ["/dev/sda3"],
        "fstab": ["/swapfile none swap sw 0 0"],
        "units": ["dev-sda3.swap"],
        "zram": ["/usr/lib/systemd/zram-generator.conf"],
    }


def test_a_docker_that_does_not_run_is_not_asked(
    machine: Any, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(machine, "active_units", lambda _units: [])
    monkeypatch.setattr(machine, "command", asked.append)
    monkeypatch.setattr(machine, "found_program", lambda _name: "")
    monkeypatch.setattr(machine, "read", lambda _path: '{"data-root": "/data"}')
    assert machine.docker()["data_root"] == "/data"
    assert asked == []
    monkeypatch.setattr(machine, "read", lambda _path: "{broken")
    assert "Expecting" in machine.docker()["daemon_json"]
    monkeypatch.setattr(machine, "read", lambda _path: "[]")
    assert machine.docker()["daemon_json"] == snapshot


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, ""), (b"version = 3\n", ""), (b"version = = 3\n", "Invalid value"), (b"\xff\xfe", "can't decode")],
)
def test_containerds_configuration_is_read_as_it_will_be(
    machine: Any, tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "config.toml"
    if content is not None:
        path.write_bytes(content)
    found = machine.toml_problem(str(path))
    assert problem in found
    assert bool(found) == bool(problem)


def test_containers_of_others_are_counted_by_namespace(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"namespaces": "default\nmoby\nempty\n", "default": "a\nb\n", "moby": "c\n", "empty": ""}
    monkeypatch.setattr(machine, "active_units", lambda _units: ["containerd"])
    monkeypatch.setattr(machine, "command", lambda argv: (0, said[argv[1] if argv[1] in said else argv[2]]))
    assert machine.containerd("/nowhere")["tasks"] == {"default": 2}


@pytest.mark.parametrize(
    ("status", "said", "package"),
    [
        (0, "moby-engine: /usr/bin/dockerd\n", "moby-engine"),
        (1, "", ""),
        (127, "", None),
        (124, "", None),
    ],
)
def test_owner_of_dockers_program(
    machine: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int, said: str, package: str | None
) -> None:
    """Of the one that runs, wherever it lies; without dpkg nothing is known of it."""
    (tmp_path / "412").mkdir()
    (tmp_path / "412/exe").symlink_to("/opt/docker/dockerd")
    answers = {"systemctl": (0, "MainPID=412\n"), "dpkg": (status, said)}
    monkeypatch.setattr(machine, "command", lambda argv: answers[argv[0]])
    found = {"program": "/opt/docker/dockerd", "package": package}
    assert machine.docker_program(running=True, proc=str(tmp_path)) == found


def test_parents_of_control_groups_that_docker_s_files_name(machine: Any, tmp_path: Path) -> None:
    for name, text in {
        "a" * 64: '{"CgroupParent": "/jobs"}',
        "b": '{"CgroupParent": "x.slice"}',
        "c": "{",
        "d": "[]",
    }.items():
        (tmp_path / "containers" / name).mkdir(parents=True)
        (tmp_path / "containers" / name / "hostconfig.json").write_text(text)
    assert machine.own_parents(str(tmp_path)) == {"a" * 12: "/jobs"}
    assert machine.own_parents("") == {}


def test_docker_that_does_not_run_is_found_by_its_program(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "command", lambda _argv: (0, "docker.io: /usr/sbin/dockerd\n"))
    monkeypatch.setattr(machine, "found_program", lambda _name: "/usr/sbin/dockerd")
    assert machine.docker_program(running=False)["package"] == "docker.io"
    monkeypatch.setattr(machine, "found_program", lambda _name: "")
    assert machine.docker_program(running=False) == {"program": "", "package": ""}


def test_devices_of_containers_are_for_root_to_see(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "gpu_containers", lambda: 3)
    monkeypatch.setattr(machine, "gpu_processes", lambda: 5)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    assert machine.devices() == {"gpu_containers": None, "gpu_processes": None}
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    assert machine.devices() == {"gpu_containers": 3, "gpu_processes": 5}


@pytest.mark.parametrize(
    ("value", "on"), [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"", False), (None, False)]
)
def test_secure_boot_is_a_variable_of_the_firmware(machine: Any, tmp_path: Path, value: bytes | None, on: bool) -> None:
    folder = tmp_path / "firmware/efi/efivars"
    folder.mkdir(parents=True)
    if value is not None:
        (folder / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c").write_bytes(value)
    assert machine.secure_boot(str(tmp_path)) is on


@pytest.mark.parametrize(
    ("policy", "found"), [("  Candidate: 6.1.1-1\n", "available"), ("  Candidate: (none)\n", ""), ("", "")]
)
def test_headers_of_the_running_kernel(machine: Any, monkeypatch: pytest.MonkeyPatch, policy: str, found: str) -> None:
    monkeypatch.setattr(machine, "command", lambda _argv: (0, policy))
    monkeypatch.setattr(machine.platform, "release", lambda: "0.0-of-nobody")
    assert machine.headers() == found
    monkeypatch.setattr(machine.os.path, "isdir", lambda path: path == "/lib/modules/0.0-of-nobody/build")
    assert machine.headers() == "installed"


def test_dkms_key_that_the_firmware_knows(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.os.path, "exists", lambda path: path == "/var/lib/dkms/mok.pub")
    monkeypatch.setattr(machine, "command", lambda _argv: (1, "/var/lib/dkms/mok.pub is already enrolled\n"))
    assert machine.dkms_key_enrolled()
    monkeypatch.setattr(machine, "command", lambda _argv: (0, "/var/lib/dkms/mok.pub is not enrolled\n"))
    assert not machine.dkms_key_enrolled()


def test_a_docker_that_runs_says_what_it_does(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    info = '{"ServerVersion":"26.1","ContainersRunning":3,"DockerRootDir":"/data","LiveRestoreEnabled":true}'
    monkeypatch.setattr(machine, "active_units", lambda _units: ["docker"])
    monkeypatch.setattr(machine, "command", lambda _argv: (0, info))
    monkeypatch.setattr(machine, "read", lambda _path: "")
    found = machine.docker()
    assert (found["version"], found["containers"], found["data_root"]) == ("26.1", 3, "/data")
