"""Carries calls of kubectl to a control plane over SSH, and to the next one when it does not answer."""

from __future__ import annotations

import base64
import binascii
import json
import os
import shlex
import shutil
import tempfile
import threading
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from pai_install.cluster import remote
from pai_install.cluster.api_errors import refusal, unanswered
from pai_install.cluster.client import ClusterClient, NoClusterError
from pai_install.cluster.kubectl import KubectlClient
from pai_install.cluster.transport import Answer, Call, Reply
from pai_install.errors import PaiError
from pai_install.site.model import Machine, Site
from pai_install.system import proc
from pai_install.system.plain import plain_text
from pai_install.system.ssh import host_key_options, sharing_options

CONNECT_TIMEOUT_S = 15
_MARGIN_S = 30.0
_LONGEST_ANSWER = 1 << 30  # bytes; the pods of the largest clusters are some hundred million
_SSH_FAILED = 255
_SKIP = f'while IFS= read -r line && [ "$line" != {remote.BEGIN} ]; do :; done; exec "$@"'
_ASKPASS = '#!/bin/sh\nprintf "%s\\n" "$PAI_INSTALL_SSH_PASSWORD"\n'


@contextmanager
def open_cluster(site: Site, known_hosts: Path, *, accept_new: bool = False) -> Iterator[ClusterClient]:
    """Yields a client of the site's cluster, which connects on the first request.

    known_hosts: ssh's list of the site's host keys. accept_new: accept unknown keys.
    """
    with ExitStack() as stack:
        yield KubectlClient(SshTransport(site.control_planes, known_hosts, stack, accept_new=accept_new))


def attached_kubectl(site: Site, known_hosts: Path, words: Sequence[str], *, terminal: bool) -> int:
    """Runs kubectl on a control-plane node of the site as if it ran here. See SshTransport.attach."""
    with ExitStack() as stack:
        return SshTransport(site.control_planes, known_hosts, stack).attach(words, terminal=terminal)


class SshTransport:
    """The Transport over OpenSSH. machines: the control planes, the preferred one first. stack: ends connections."""

    def __init__(
        self, machines: Sequence[Machine], known_hosts: Path, stack: ExitStack, *, accept_new: bool = False
    ) -> None:
        self._machines = list(machines)
        self._known_hosts = known_hosts.resolve()
        self._accept_new = accept_new
        self._stack = stack
        self._folder: Path | None = None
        self._lock = threading.RLock()

    def run(self, calls: Sequence[Call]) -> Reply:
        """Executes the calls on the first available control-plane node. See Transport.run."""
        down: dict[str, str] = {}
        for machine in tuple(self._machines):
            done = self._ssh(machine, calls)
            answers = _answers(machine.hostname, done, calls)
            if isinstance(answers, str):
                down[machine.hostname] = answers
            elif len(answers) == 1 and unanswered(answers[0], calls[0]):
                down[machine.hostname] = answers[0].stderr.strip()[-400:]
            else:
                self._prefer(machine)
                return Reply(machine.hostname, answers)
        raise NoClusterError(down)

    def lines(self, call: Call) -> Generator[str]:
        """Yields the lines of a reading call. See Transport.lines."""
        down: dict[str, str] = {}
        for machine in tuple(self._machines):
            argv, env, prefix = self._command(machine)
            empty = True
            try:
                for line in proc.lines(argv, stdin=prefix + _request([call], stream=True), env=env):
                    empty = False
                    yield line
            except proc.FailedError as error:
                failed = Answer(error.completed.returncode, "", error.completed.stderr)
                connection = failed.returncode == _SSH_FAILED or unanswered(failed, call)
                if not (empty and connection):
                    raise refusal(machine.hostname, call, failed) from error
                down[machine.hostname] = failed.stderr.strip()[-400:] or "the connection failed"
                continue
            self._prefer(machine)
            return
        raise NoClusterError(down)

    def attach(self, words: Sequence[str], *, terminal: bool) -> int:
        """Runs kubectl on a control-plane node with this process's input and output, and returns its exit status.

        terminal: allocate a terminal there, on which sudo may ask for its password. Raises NoClusterError.
        """
        host = self.run([Call(("get", "--raw=/readyz"), reads=True, timeout_s=10)]).host
        machine = next(machine for machine in self._machines if machine.hostname == host)
        sudo, prefix = (["sudo", "--"], "") if terminal and sudo_words(machine)[0] else sudo_words(machine)
        command = [*remote.KUBECTL, *words]
        if prefix:
            # a sudo that asks for no password leaves it in the input, where kubectl must not read it
            command, prefix = ["/bin/sh", "-c", _SKIP, "sh", *command], f"{prefix}{remote.BEGIN}\n"
        argv = ["ssh", "-t" if terminal else "-T", *self.options(machine), machine.hostip, "--"]
        argv.append(shlex.join([*sudo, *command]))
        return proc.attached(argv, env=self.environment(machine), prefix=prefix)

    def _ssh(self, machine: Machine, calls: Sequence[Call]) -> proc.Completed:
        argv, env, prefix = self._command(machine)
        limit = sum(call.timeout_s for call in calls) + CONNECT_TIMEOUT_S + _MARGIN_S
        try:
            return proc.run(argv, check=False, stdin=prefix + _request(calls), env=env, timeout_s=limit)
        except proc.OverdueError as error:
            return proc.Completed(tuple(argv), _SSH_FAILED, error.stdout, f"no answer within {limit:g} s")

    def _command(self, machine: Machine) -> tuple[list[str], dict[str, str], str]:
        """Returns the ssh command with the remote program, its environment, and the prefix of its input."""
        # -I: it starts in the login user's home, where Python would look for modules first
        program = shlex.join(["python3", "-I", "-c", Path(remote.__file__).read_text()])
        sudo, prefix = sudo_words(machine)
        argv = ["ssh", *self.options(machine), machine.hostip, "--", f"{shlex.join(sudo)} {program}".strip()]
        return argv, self.environment(machine), prefix

    def options(self, machine: Machine) -> list[str]:
        """The words for ssh that reach a machine as the site says."""
        return ssh_options(machine, (*sharing_options(1), f'ControlPath="{self.folder / "%C"}"', *self._host_keys()))

    def environment(self, machine: Machine) -> dict[str, str]:
        """Returns ssh's environment. A program of ours provides the password, so that no argument contains it."""
        return ssh_environment(machine, self.folder / "askpass")

    def _host_keys(self) -> tuple[str, ...]:
        return host_key_options(self._known_hosts, accept_new=self._accept_new)

    @property
    def folder(self) -> Path:
        """Returns a private folder for sockets, in /tmp because of the limit of 108 bytes for socket paths."""
        with self._lock:
            if self._folder is None:
                folder = Path(tempfile.mkdtemp(prefix="pai-cluster-", dir="/tmp"))
                self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
                self._stack.callback(self._disconnect)
                (folder / "askpass").write_text(_ASKPASS)
                (folder / "askpass").chmod(0o700)
                self._folder = folder
            return self._folder

    def _disconnect(self) -> None:
        for machine in self._machines:
            proc.run(["ssh", *self.options(machine), "-O", "exit", machine.hostip], check=False, timeout_s=10)

    def _prefer(self, machine: Machine) -> None:
        """Asks that control plane first from now on."""
        with self._lock:
            self._machines.remove(machine)
            self._machines.insert(0, machine)


def ssh_options(machine: Machine, options: Sequence[str]) -> list[str]:
    """The words for ssh: where a machine is, as whom, and those options."""
    login = ["PasswordAuthentication=no", "KbdInteractiveAuthentication=no", "BatchMode=yes"]
    if machine.ssh.password is not None:
        login = ["NumberOfPasswordPrompts=1"]
    if machine.ssh.key_file is not None:
        login.append(f'IdentityFile="{machine.ssh.key_file}"')
    every = (*login, f"ConnectTimeout={CONNECT_TIMEOUT_S}", "LogLevel=ERROR", *options)
    words = [word for option in every for word in ("-o", option)]
    return [*words, "-p", str(machine.ssh.port), "-l", machine.ssh.user]


def ssh_environment(machine: Machine, askpass: Path) -> dict[str, str]:
    """ssh's environment. askpass: a program that prints PAI_INSTALL_SSH_PASSWORD."""
    found = {**os.environ, "LC_ALL": "C.UTF-8"}
    if machine.ssh.password is not None:
        found["PAI_INSTALL_SSH_PASSWORD"] = machine.ssh.password.get_secret_value()
        found |= {
            "SSH_ASKPASS": str(askpass),
            "SSH_ASKPASS_REQUIRE": "force",
            "DISPLAY": os.environ.get("DISPLAY", ":0"),
        }
    return found


def sudo_words(machine: Machine) -> tuple[list[str], str]:
    """Returns the prefix that runs a command as root, and the prefix of its input (the password, if any)."""
    if not machine.become or machine.ssh.user == "root":
        return [], ""
    if machine.ssh.password is None:
        return ["sudo", "-n", "--"], ""
    return ["sudo", "-S", "-p", "", "--"], machine.ssh.password.get_secret_value() + "\n"


def _request(calls: Sequence[Call], *, stream: bool = False) -> str:
    words = [{**asdict(call), "argv": list(call.argv)} for call in calls]
    body = json.dumps({"calls": words, "stream": stream})
    return f"{remote.BEGIN}\n{len(body)}\n{body}"


def _answers(host: str, done: proc.Completed, calls: Sequence[Call]) -> tuple[Answer, ...] | str:
    """The answers, or why the control plane took no call.

    Raises PaiError when it took calls that change something and their answer is lost.
    """
    _, found, packed = done.stdout.rpartition(remote.END)
    if found:
        try:
            return _unpacked(packed.split()[0], len(calls))
        except (binascii.Error, zlib.error, ValueError, KeyError, TypeError, IndexError, RecursionError):
            pass  # cut off, or something else wrote there: lost
    why = plain_text(done.stderr.strip()[-400:]) or f"exit status {done.returncode} without a message"
    if remote.BEGIN not in done.stdout or all(call.reads for call in calls):
        return why
    raise PaiError(
        f"the connection to {host} was lost before the answer to the request",
        code="connection-lost",
        details=why,
        remedy="see with pai-install status what was done, then run the same command again",
    )


def _unpacked(packed: str, wanted: int) -> tuple[Answer, ...]:
    """Returns one answer per call. Raises ValueError and similar errors for any other data."""
    inflating = zlib.decompressobj()
    raw = json.loads(inflating.decompress(base64.b64decode(packed), _LONGEST_ANSWER))
    if not (inflating.eof and isinstance(raw, list) and len(raw) <= wanted):
        raise ValueError("cut off, too long, or no list of answers")
    return tuple(_answer(row["rc"], row["out"], row["err"]) for row in raw)


def _answer(returncode: object, stdout: object, stderr: object) -> Answer:
    return Answer(returncode if isinstance(returncode, int) else None, str(stdout), plain_text(str(stderr)))
