"""A cluster with monitoring, and those who are told of its alerts."""

from __future__ import annotations

import ctypes
import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pai_install.ports import PROMETHEUS_PORT
from tests.mail_server import PASSWORD, USER, Mailbox, mail_server
from tests.web_hook import Hook, web_hook

from .conftest import KEPT, Cluster, lab_of, machines

MASTER, WELL, DEAD = MACHINES = ("lab-master", "lab-worker1", "lab-worker2")
RUNS = 3
# the kernel of the box says whether a clock is synchronised, and other work uses its processors and its disk
OF_THE_BOX = {
    "NodeCPUUsage",
    "EtcdSlow",
    *({"NodeClock"} if ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(256)) == 5 else ()),
}
ASK = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())"
_NODE = "/root/small-disk"


@dataclass(frozen=True)
class Site:
    """The cluster, the receivers of its alerts, and the CPU seconds and tasks of runs before monitoring was on."""

    cluster: Cluster
    hook: Hook
    mail: Mailbox
    before: tuple[float, Mapping[str, int]] | None

    def prometheus(self, path: str) -> Any:
        """The data of an answer of Prometheus, which only its own machine gets."""
        url = f"http://127.0.0.1:{PROMETHEUS_PORT}/api/v1/{path}"
        return json.loads(self.cluster.on(MASTER, f'python3 -c "{ASK}" "{url}"'))["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression."""
        found: list[dict[str, Any]] = self.prometheus(f"query?query={quote(expression)}")["result"]
        return found

    def raised(self) -> set[tuple[str, str]]:
        """Name and node of each alert that fires or soon does, without those of the box."""
        labels = [alert["labels"] for alert in self.prometheus("alerts")["alerts"]]
        found = {(it["alertname"], it.get("node", "")) for it in labels if it["severity"] not in ("none", "info")}
        return {(name, node) for name, node in found if name not in OF_THE_BOX}

    def told(self, status: str = "firing") -> set[tuple[str, str]]:
        """Name and node of each alert at the web hook, without those of the box."""
        return {(name, node) for name, node in self.hook.alerts(status) if name not in OF_THE_BOX}

    def mailed(self, status: str = "firing") -> set[str]:
        """Name of each alert in mails, without those of the box."""
        return self.mail.alerts(status) - OF_THE_BOX

    def clear(self) -> None:
        """Forgets what was told."""
        self.hook.clear()
        self.mail.clear()


@contextmanager
def kept_or_new(folder: Path, subnet: str) -> Iterator[Cluster]:
    """The lab that somebody keeps, or a new one without an installation."""
    if KEPT:
        yield Cluster(Path(KEPT), subprocess.CompletedProcess([], 0, "", ""))
        return
    with machines(folder, subnet) as cluster:
        yield cluster


def gateway(cluster: Cluster) -> str:
    """The address of the box in the network of the machines."""
    return f"{str(lab_of(cluster.site).machine(MASTER).address).rpartition('.')[0]}.1"


def idle(cluster: Cluster) -> tuple[float, Mapping[str, int]]:
    """The least CPU seconds of some runs with nothing to do, and the tasks of each machine.

    Elapsed time would measure the other work of the box.
    """
    reports, seconds = [], []
    for _ in range(RUNS):
        before = os.times()
        reports.append(cluster.apply())
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert all(report["ok"] for report in reports), reports[0]["stderr"]
    changed = {host: counts["changed"] for report in reports for host, counts in report["hosts"].items()}
    assert changed == dict.fromkeys(MACHINES, 0)
    tasks = {host: counts["tasks"] for host, counts in reports[-1]["hosts"].items()}
    return min(seconds), tasks


_SCHEDULER = """\
scheduler: {type: kueue}
virtual-clusters:
  - {name: default, quota: [{sku: lab-gpu, machines: 1}]}
"""
_MONITORING = """\
monitoring:
  web-hooks: [{{name: team, url: 'https://{address}:{hook}/'}}]
alert-manager:
  alert-handler:
    email-configs:
      admin-receiver: admin@example.com
      smtp-host: {address}
      smtp-port: {mail}
      smtp-from: pai@example.com
      smtp-auth-username: {user}
      smtp-auth-password: {password}
"""


def services(address: str = "", hook: int = 0, mail: int = 0) -> str:
    """services-configuration.yaml: with Kueue, and with monitoring where there are receivers."""
    if not hook:
        return _SCHEDULER
    return _SCHEDULER + _MONITORING.format(address=address, hook=hook, mail=mail, user=USER, password=PASSWORD)


def authority(folder: Path, address: str) -> None:
    """Makes an authority and a certificate of the receivers at an address."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    new = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(*new, "-x509", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=authority of the site", "-days", "2")
    openssl(*new, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=receivers")
    (folder / "names").write_text(f"subjectAltName=IP:{address}\n")
    sign = ("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial")
    openssl(*sign, "-out", "tls.crt", "-days", "1", "-extfile", "names")


def trust(cluster: Cluster, folder: Path) -> None:
    """Makes the control plane trust the authority, as docs/monitoring.md says."""
    text = (folder / "ca.crt").read_text()
    path = "/usr/local/share/ca-certificates/receivers.crt"
    cluster.on(MASTER, f'printf %s "{text}" > {path} && update-ca-certificates')


@contextmanager
def receivers(folder: Path, address: str) -> Iterator[tuple[Hook, Mailbox]]:
    """A web hook and a mail server at an address, with the certificate in the folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    with (
        web_hook(address, context) as hook,
        mail_server(address, folder / "tls.crt", folder / "tls.key") as mail,
    ):
        yield hook, mail


@contextmanager
def small_disk(cluster: Cluster, machine: str, folder: Path) -> Iterator[None]:
    """A disk of 64 MiB at /mnt/small of a machine. The box mounts it, since a lab machine has no tools for that."""
    image = folder / "small.img"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    done = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
    device = done.stdout.strip()
    number = os.minor(Path(device).stat().st_rdev)
    inside = ["nsenter", "--mount", "--target", str(_first_process(cluster, machine)), "sh", "-c"]
    try:
        made = f"rm -f {_NODE}; mkdir -p /mnt/small; mknod {_NODE} b 7 {number}; mount -t ext4 {_NODE} /mnt/small"
        subprocess.run([*inside, made], check=True)
        yield
    finally:
        # a machine that lost its power has lost its mounts
        subprocess.run([*inside, f"umount /mnt/small; rm -f {_NODE}"], check=False, capture_output=True)
        time.sleep(1)
        subprocess.run(["losetup", "--detach", device], check=True)


def _first_process(cluster: Cluster, machine: str) -> int:
    """A process of the box in the mounts of a machine."""
    mounts = cluster.on(machine, "readlink /proc/1/ns/mnt").strip()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if str((path / "ns/mnt").readlink()) == mounts:
                return int(path.name)
        except OSError:  # it has ended
            continue
    raise AssertionError(f"{machine} has no process")
