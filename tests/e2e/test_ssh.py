"""The example of an SSH server in a job: OpenSSH through the console, for its owner alone, until a right ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests import examples

from .conftest import ROOT, Cluster, until
from .test_jobs import job, shown
from .test_notebook import GROUP, PASSWORDS, SERVICES, TALK, add_users, stranger, user
from .tool_site import IMAGE, WORKERS, tool_site

pytestmark = [pytest.mark.lab, pytest.mark.soak]

EXAMPLE = "ssh/server.yaml"
SIZE = 100 * 1024 * 1024
PORT = 2222


@pytest.fixture(scope="module")
def site(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with Kueue, three users, and the image."""
    with tool_site(cluster, SERVICES):
        try:
            add_users(cluster)
            yield cluster
        finally:
            for name in ("shell", "short"):
                job(cluster, "stop", name, "--yes")
            for name in PASSWORDS:
                user(cluster, "remove", name, "--yes")


@dataclass(frozen=True)
class Owner:
    """alice with her key. folder: has files with the tokens of users."""

    site: Cluster
    folder: Path

    def options(self, who: str = "alice") -> list[str]:
        proxy = [str(ROOT / "pai-install"), "job", "connect", "--site", str(self.site.site)]
        proxy += ["--token-file", str(self.folder / who)]
        known = f"UserKnownHostsFile={self.folder / 'known_hosts'}"
        words = ["BatchMode=yes", f"IdentityFile={self.folder / 'key'}", known, "StrictHostKeyChecking=accept-new"]
        return [
            "-F",
            "/dev/null",
            *(part for one in words for part in ("-o", one)),
            "-o",
            f"ProxyCommand={shlex.join(proxy)} %n",
        ]

    def words(self, command: str, name: str = "shell", who: str = "alice") -> list[str]:
        return ["ssh", *self.options(who), f"root@{name}", command]

    def ssh(self, command: str, name: str = "shell", who: str = "alice") -> CompletedProcess[str]:
        words = self.words(command, name, who)
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def alice(site: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Owner:
    """The owner of the job `shell`, once its server answers."""
    made = Owner(site, tmp_path_factory.mktemp("ssh"))
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made.folder / "key")], check=True)
    for name, password in PASSWORDS.items():
        browser = stranger(site)
        login = f"{browser.origin}/rest-server/api/v2/authn/basic/login"
        answer = browser.ask("POST", login, data={"username": name, "password": password})
        (made.folder / name).write_text(answer.json()["token"])
    (made.folder / "nobody").write_text("forged")
    submitted(made, "shell")
    return made


def submitted(owner: Owner, name: str) -> None:
    """Submits the example as it is but for its image and sizes."""
    path = owner.folder / f"{name}.yaml"
    path.write_text(examples.lab_variant(examples.text_of(EXAMPLE), IMAGE))
    key = (owner.folder / "key.pub").read_text().strip()
    words = (str(path), "--name", name, "--set", f"publicKey={key}", "--group", GROUP, "--user", "alice")
    done = job(owner.site, "submit", *words)
    assert done.returncode == 0, done.stderr
    assert until(lambda: shown(owner.site, name)["state"] == "RUNNING", 180), shown(owner.site, name)
    assert until(lambda: owner.ssh("true", name).returncode == 0, 60), owner.ssh("true", name).stderr


def test_a_session_is_in_the_job(alice: Owner) -> None:
    done = alice.ssh("echo $PAI_JOB_NAME $PAI_USER_NAME; exit 3")
    assert (done.returncode, done.stdout) == (3, "alice~shell alice\n"), done.stderr


def test_the_log_has_the_fingerprint_of_the_host_key(alice: Owner) -> None:
    known = alice.folder / "known_hosts"
    found = subprocess.run(["ssh-keygen", "-l", "-f", str(known)], capture_output=True, text=True, check=True).stdout
    log = job(alice.site, "logs", "shell").stdout
    assert re.findall(r"host key: 256 (SHA256:\S+)", log) == [found.split()[1]]
    assert alice.ssh("true").returncode == 0, "the key is the same"


def test_a_large_file_arrives(alice: Owner, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(SIZE))
    begin = time.monotonic()
    words = ["scp", *alice.options(), str(tmp_path / "file"), "root@shell:/root/file"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    sys.stderr.write(f"{SIZE / 1e6 / (time.monotonic() - begin):.0f} MB/s\n")
    here = subprocess.run(["sha256sum", str(tmp_path / "file")], capture_output=True, text=True, check=True).stdout
    assert alice.ssh("sha256sum /root/file").stdout.split()[0] == here.split()[0]


@pytest.mark.parametrize("token", ["carol", "bob", "nobody"])
def test_nobody_else_connects(alice: Owner, token: str) -> None:
    done = alice.ssh("true", "alice~shell", token)
    assert (done.returncode, "job-connection-refused" in done.stderr) == (255, True), done.stderr


def test_the_network_closes_its_port_to_a_colleague(alice: Owner) -> None:
    """A pod of the same group, and a machine that is no control plane."""
    site = alice.site
    pods = ("get", "pods", f"--namespace={GROUP}", "--selector=pai-install/job=shell", "--output=json")
    (pod,) = json.loads(site.kubectl(*pods))["items"]
    address = pod["status"]["podIP"]
    (elsewhere,) = set(WORKERS) - {pod["spec"]["nodeName"]}
    assert "timed out" in site.on(elsewhere, f"python3 -c '{TALK}' {address} {PORT} 2>&1 || true")
    container = {"name": "main", "image": IMAGE, "command": ["sleep", "600"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    site.kubectl("run", "asks", f"--namespace={GROUP}", "--image=x", f"--overrides={json.dumps({'spec': spec})}")
    try:
        site.kubectl("wait", "--for=condition=Ready", "pod/asks", f"--namespace={GROUP}", "--timeout=60s")
        time.sleep(2)  # the network knows the pod
        ask = ("exec", "asks", f"--namespace={GROUP}", "--", "python3", "-c", TALK, address)
        assert "timed out" in site.ask(*ask, str(PORT)).stderr
        assert "refused" in site.ask(*ask, str(PORT + 1)).stderr, "the pod itself is reached"
    finally:
        site.ask("delete", "pod", "asks", f"--namespace={GROUP}", "--wait=false")


def test_an_unused_server_is_warned_of(alice: Owner) -> None:
    """docs/idle-gpus.md: the limit of notebooks counts for the example."""
    assert until(lambda: shown(alice.site, "shell")["warned"], 400)
    assert shown(alice.site, "shell")["state"] == "RUNNING"


def ended_after(owner: Owner, name: str, cause: list[str]) -> float:
    """Seconds from a cause to the end of a session."""
    with subprocess.Popen(
        owner.words("echo begins; sleep 60", name),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"begins\n"
        subprocess.run(cause, capture_output=True, check=True)
        begin = time.monotonic()
        session.communicate(timeout=20)
        assert session.returncode == 255
    sys.stderr.write(f"ended {time.monotonic() - begin:.2f} s after its cause\n")
    return time.monotonic() - begin


def test_a_stop_ends_it(alice: Owner) -> None:
    submitted(alice, "short")
    stop = [str(ROOT / "pai-install"), "job", "stop", "short", "--yes", "--site", str(alice.site.site)]
    assert ended_after(alice, "short", stop) < 2


def test_a_removed_user_is_out(alice: Owner) -> None:
    remove = [str(ROOT / "pai-install"), "user", "remove", "alice", "--yes", "--site", str(alice.site.site)]
    assert ended_after(alice, "shell", remove) < 2
    assert "job-connection-refused" in alice.ssh("true").stderr
