"""OpenSSH's client and an SSH server, with `job connect` and the program of the console between them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import asyncssh
import pytest
from websockets.asyncio.client import connect

from tests.integration.console.test_program import Program, program
from tests.integration.control_plane import Json
from tests.integration.users.conftest import Users, users
from tests.stopwatch import Stopwatch
from tests.waiting import until

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no OpenSSH client")

__all__ = ["program", "users"]
# with a capital letter, which ssh leaves as it is in %n alone
NAME, OTHER = "Shell_A", "other"
SIZE = 100 * 1024 * 1024
IDLE = 50
# what 50 connections with TLS may add to the memory of the program
IDLE_MIB = 40


@dataclass(frozen=True)
class Person:
    """alice, with her key, the host key of her job, and tokens of users."""

    program: Program
    folder: Path

    def proxy(self, who: str = "alice") -> str:
        words = [sys.executable, "-m", "pai_install", "job", "connect", "--token-file", str(self.folder / who)]
        words += ["--console", f"https://localhost:{self.program.web_port}", "--authority", str(self.program.authority)]
        return f"{shlex.join(words)} %n"

    def options(self, who: str = "alice") -> list[str]:
        known = ("StrictHostKeyChecking=yes", f"UserKnownHostsFile={self.folder / 'known_hosts'}", "HostKeyAlias=uid")
        options = ("BatchMode=yes", f"IdentityFile={self.folder / 'key'}", "IdentitiesOnly=yes", *known)
        return [
            "-F",
            "/dev/null",
            *(word for one in options for word in ("-o", one)),
            "-o",
            f"ProxyCommand={self.proxy(who)}",
        ]

    def ssh(self, command: str, name: str = NAME, who: str = "alice") -> CompletedProcess[str]:
        words = ["ssh", *self.options(who), f"alice@{name}", command]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)

    def sftp(self, *commands: str) -> None:
        words = ["sftp", *self.options(), "-b", "-", f"alice@{NAME}"]
        lines = "".join(f"{command}\n" for command in commands)
        done = subprocess.run(words, input=lines, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr

    def idle(self) -> connect:
        """A connection that nothing passes."""
        return connect(
            f"wss://localhost:{self.program.web_port}/connect/{NAME}",
            ssl=ssl.create_default_context(cafile=str(self.program.authority)),
            additional_headers={"Authorization": f"Bearer {(self.folder / 'alice').read_text()}"},
            proxy=None,
            open_timeout=60,
        )


async def run_command(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """A command of the client, in a shell."""
    child = await asyncio.create_subprocess_shell(
        process.command or "true", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    await asyncio.gather(copied(child.stdout, process.stdout), copied(child.stderr, process.stderr))
    process.exit(await child.wait())


async def copied(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    while piece := await source.read(65536):
        target.write(piece)
        await target.drain()


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """The folder with the keys, and the port of an SSH server that lets alice's key in."""
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("key", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "known_hosts").write_text(f"uid {(folder / 'host.pub').read_text()}")
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    async def listening() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[str(folder / "host")],
            authorized_client_keys=str(folder / "key.pub"),
            process_factory=run_command,
            sftp_factory=True,
            encoding=None,
        )

    server = asyncio.run_coroutine_threadsafe(listening(), loop).result(20)
    yield folder, server.get_port()
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)


def make_job(users: Users, name: str, shown: str, **labels: str) -> None:
    """A job of alice as it is submitted, and its pod as a controller and a kubelet would leave it."""
    marks = {"pai-install/user": "alice", "pai-install/group": "vision", "pai-install/job": name}
    container = {"name": "main", "image": "none"}
    template: Json = {
        "metadata": {"labels": {**marks, **labels}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    notes = {"pai-install/job-name": shown}
    metadata: Json = {"name": name, "namespace": "vision", "labels": marks, "annotations": notes}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    assert users.admin.create(job) == ""
    uid = users.admin.ask("GET", f"/apis/batch/v1/namespaces/vision/jobs/{name}")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    own = {**marks, **labels, "batch.kubernetes.io/job-name": name, "job-name": name}
    metadata = {"name": f"{name}-0", "namespace": "vision", "labels": own, "ownerReferences": [owner]}
    spec: Json = {"containers": [container], "nodeName": "gpu-01"}
    assert users.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}) == ""
    status = {"status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
    path = f"/api/v1/namespaces/vision/pods/{name}-0/status"
    users.admin.ask("PATCH", path, status, "application/merge-patch+json")


@pytest.fixture(scope="module")
def alice(program: Program, users: Users, sshd: tuple[Path, int]) -> Person:
    """The owner of a job with an SSH server."""
    folder, port = sshd
    for name, token in users.tokens.items():
        (folder / name).write_text(token["status"]["token"])
    (folder / "nobody").write_text("forged")
    make_job(users, "shell-a", NAME, **{"pai-install/ssh-port": str(port)})
    make_job(users, OTHER, OTHER)
    made = Person(program, folder)
    until(lambda: made.ssh("true").returncode == 0, 180)
    return made


def test_a_command_runs_and_its_exit_code_returns(alice: Person) -> None:
    done = alice.ssh("echo $((6 * 7)); echo no >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, "42\n"), done.stderr
    assert alice.ssh("true", f"alice~{NAME}").returncode == 0


def memory(pid: int) -> float:
    """MiB of a process."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def test_idle_connections_need_little_memory(alice: Person) -> None:
    async def added() -> float:
        before = memory(alice.program.pid)
        async with AsyncExitStack() as stack:
            for _ in range(IDLE):
                there = await stack.enter_async_context(alice.idle())
                assert bytes(await there.recv(decode=False)).startswith(b"SSH-2.0")
            await asyncio.sleep(3)  # some looks at all of them
            return memory(alice.program.pid) - before

    found = asyncio.run(added())
    sys.stderr.write(f"{IDLE} connections: {found:.1f} MiB\n")
    assert found < IDLE_MIB


def test_a_large_file_goes_there_and_back(alice: Person, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    content = os.urandom(SIZE)
    (tmp_path / "file").write_bytes(content)
    begin = time.monotonic()
    alice.sftp(f"put {tmp_path / 'file'} {there}", f"get {there} {back}")
    sys.stderr.write(f"{2 * SIZE / 1e6 / (time.monotonic() - begin):.0f} MB/s\n")
    assert hashlib.sha256(back.read_bytes()).digest() == hashlib.sha256(content).digest()


@pytest.mark.parametrize("token", ["bob", "carol", "nobody"])
def test_nobody_else_connects(alice: Person, token: str) -> None:
    """A colleague, a member of another group, and someone without an account."""
    done = alice.ssh("true", f"alice~{NAME}", token)
    assert (done.returncode, "job-connection-refused" in done.stderr) == (255, True), done.stderr


def test_refusals_leave_the_log_as_it_is(alice: Person) -> None:
    before = alice.program.log.read_text()
    assert "job-connection-refused" in alice.ssh("true", NAME, "nobody").stderr
    time.sleep(1)
    assert alice.program.log.read_text() == before


def test_a_job_without_the_port_has_no_way_in(alice: Person) -> None:
    done = alice.ssh("true", OTHER)
    assert (done.returncode, "job-connection-refused" in done.stderr) == (255, True), done.stderr


def test_a_removed_user_is_out_within_two_seconds(alice: Person, users: Users) -> None:
    words = ["ssh", *alice.options(), f"alice@{NAME}", "echo begins; sleep 60"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"begins\n"
        time.sleep(2)  # it goes on while the user exists
        assert session.poll() is None
        watch = Stopwatch()
        users.admin.ask("DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/alice")
        _, said = session.communicate(timeout=20)
    assert watch.within(3)
    assert (session.returncode, b"job-connection-lost" in said) == (255, True), said
    assert "job-connection-refused" in alice.ssh("true").stderr
