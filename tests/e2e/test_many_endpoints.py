"""Fifty SSH servers, each in a network of its own: the engine logs in once to each."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pai_install.engine.base import EventKind, RunRequest
from pai_install.engine.runner import RunnerEngine
from pai_install.lab.image import cache_dir
from pai_install.plan.model import Inventory
from pai_install.system.content import content_dir

from .conftest import until

pytestmark = [pytest.mark.lab, pytest.mark.soak]

COUNT = 50
SUBNET = "172.30.88"
BRIDGE = "pai-many"
NAMES = tuple(f"many-{number:02}" for number in range(COUNT))
# OpenSSH's own defaults decide how many logins may be under way
OPTIONS = (
    "UsePAM=no", "StrictModes=no", "PermitRootLogin=yes", "PidFile=none", "HostKey=/run/many/host",
    "AuthorizedKeysFile=/run/many/user.pub",
)  # fmt: skip


def sh(*words: str, text: str = "") -> str:
    """Runs a program that must succeed."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def address(number: int) -> str:
    return f"{SUBNET}.{100 + number}"


@dataclass(frozen=True)
class Endpoints:
    """The servers. logs: name -> what its sshd says; key: of the login; known_hosts: names them all."""

    logs: dict[str, Path]
    key: Path
    known_hosts: Path

    def logins(self) -> dict[str, int]:
        """Name -> how many logins there were."""
        return {name: log.read_text().count("Accepted publickey") for name, log in self.logs.items()}


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    """The lab's base image under each server, and a network namespace around it; all of it gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    images = sorted(cache_dir().glob("base-trixie-*"))
    if not images:
        pytest.skip("the lab's base image is not built")
    folder = tmp_path_factory.mktemp("many")
    root = folder / "root"
    for name in ("root", "upper"):
        (folder / name).mkdir()
    servers: list[subprocess.Popen[bytes]] = []
    try:
        _mount(images[0], folder, root)
        yield _start(folder, root, servers)
    finally:
        for server in servers:
            server.send_signal(signal.SIGKILL)
            server.wait()
        _remove(folder)


def _mount(image: Path, folder: Path, root: Path) -> None:
    """An overlay over the image. Its upper layer is in memory: it may not be on another overlay."""
    upper = folder / "upper"
    sh("mount", "-t", "tmpfs", "tmpfs", str(upper))
    for name in ("u", "w"):
        (upper / name).mkdir()
    layers = f"lowerdir={image},upperdir={upper / 'u'},workdir={upper / 'w'}"
    sh("mount", "-t", "overlay", "overlay", "-o", layers, str(root))
    for name in ("dev", "proc"):
        sh("mount", "--rbind", f"/{name}", str(root / name))
        sh("mount", "--make-rslave", str(root / name))


def _start(folder: Path, root: Path, servers: list[subprocess.Popen[bytes]]) -> Endpoints:
    run = root / "run" / "many"
    run.mkdir(parents=True)
    (root / "run" / "sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(run / name))
    _connect()
    known = folder / "known_hosts"
    host = (run / "host.pub").read_text().split()
    known.write_text("".join(f"{address(number)} {host[0]} {host[1]}\n" for number in range(COUNT)))
    logs = {}
    options = [word for option in OPTIONS for word in ("-o", option)]
    for name in NAMES:
        logs[name] = folder / f"{name}.log"
        words = ["ip", "netns", "exec", name, "chroot", str(root), "/usr/sbin/sshd", "-D", "-e", *options]
        with logs[name].open("wb") as log:
            servers.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    assert until(lambda: all("listening" in log.read_text() for log in logs.values()), 60)
    key = folder / "key"
    key.write_bytes((run / "user").read_bytes())
    key.chmod(0o600)
    return Endpoints(logs, key, known)


def _connect() -> None:
    """A bridge on the controller host, and a namespace with an address for each server."""
    sh("ip", "-batch", "-", text=f"link add {BRIDGE} type bridge\naddress add {SUBNET}.1/24 dev {BRIDGE}\n"
       f"link set {BRIDGE} up\n")  # fmt: skip
    for number, name in enumerate(NAMES):
        sh("ip", "netns", "add", name)
        sh("ip", "-batch", "-", text=f"link add {name} type veth peer name eth0 netns {name}\n"
           f"link set {name} master {BRIDGE} up\n")  # fmt: skip
        sh("ip", "-netns", name, "-batch", "-", text=f"address add {address(number)}/24 dev eth0\nlink set eth0 up\n"
           "link set lo up\n")  # fmt: skip


def _remove(folder: Path) -> None:
    for name in NAMES:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True, check=False)
    for path in (folder / "root" / "dev", folder / "root" / "proc", folder / "root", folder / "upper"):
        subprocess.run(["umount", "--recursive", "--lazy", str(path)], capture_output=True, check=False)


def test_fifty_servers_are_observed_with_one_login_each(endpoints: Endpoints, tmp_path: Path) -> None:
    shared = {"ansible_user": "root", "ansible_ssh_private_key_file": str(endpoints.key)}
    hosts = {name: {"ansible_host": address(number)} for number, name in enumerate(NAMES)}
    inventory = Inventory({"control_plane": NAMES[:1], "workers": NAMES[1:]}, shared, hosts)
    answered: list[set[str]] = []
    with RunnerEngine(content_dir(), tmp_path / "work", endpoints.known_hosts, log=tmp_path / "ansible.log") as engine:
        for _time in range(2):
            events = list(engine.run(RunRequest("observe.yml", inventory, limit=NAMES)))
            bad = [event for event in events if event.kind in (EventKind.FAILED, EventKind.UNREACHABLE)]
            assert bad == []
            answered.append({event.host for event in events if "ansible_facts" in event.result})
    assert answered == [set(NAMES)] * 2
    assert set(endpoints.logins().values()) == {1}, endpoints.logins()
