"""The API of a site's cluster from the controller host: over SSH to the first reachable control-plane node."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from pai_install.cluster import relay
from pai_install.cluster.http import ApiRequest, Connections
from pai_install.cluster.over_http import HttpClient
from pai_install.cluster.ssh_connection import SshCommand, over_ssh, relay_words
from pai_install.site.model import Machine, Site
from pai_install.system import proc
from pai_install.system.ssh import host_key_options, sharing_options

CONNECT_TIMEOUT_S = 15
_KUBECTL = ("/usr/local/bin/kubectl", "--kubeconfig", relay.CONFIG)
_SKIP = f'while IFS= read -r line && [ "$line" != {relay.BEGIN} ]; do :; done; exec "$@"'
_ASKPASS = '#!/bin/sh\nprintf "%s\\n" "$PAI_INSTALL_SSH_PASSWORD"\n'


@contextmanager
def open_cluster(site: Site, known_hosts: Path, *, accept_new: bool = False) -> Iterator[HttpClient]:
    """Yields a client of the site's cluster, which connects on the first request.

    known_hosts: ssh's list of the site's host keys. accept_new: accept unknown keys.
    """
    with ExitStack() as stack:
        client = HttpClient(SshLogins(site.control_planes, known_hosts, stack, accept_new=accept_new).connections)
        stack.callback(client.close)
        yield client


def attached_kubectl(site: Site, known_hosts: Path, words: Sequence[str], *, terminal: bool) -> int:
    """Runs kubectl on a control-plane node of the site as if it ran here. See SshLogins.attach."""
    with ExitStack() as stack:
        return SshLogins(site.control_planes, known_hosts, stack).attach(words, terminal=terminal)


def fed_kubectl(
    site: Site, known_hosts: Path, words: Sequence[str], content: IO[bytes], on_size: Callable[[int], None]
) -> proc.Completed:
    """Runs kubectl on a control-plane node of the site with a file as its input. See proc.feed."""
    with ExitStack() as stack:
        argv, prefix, environment = SshLogins(site.control_planes, known_hosts, stack).kubectl(words, terminal=False)
        return proc.feed(argv, content, on_size, env=environment, prefix=prefix)


class SshLogins:
    """SshLogins to machines with OpenSSH. machines: the preferred one first. stack: ends connections."""

    def __init__(
        self, machines: Sequence[Machine], known_hosts: Path, stack: ExitStack, *, accept_new: bool = False
    ) -> None:
        self._machines = tuple(machines)
        self._known_hosts = known_hosts.resolve()
        self._accept_new = accept_new
        self._stack = stack
        self._folder: Path | None = None
        self._lock = threading.RLock()

    @property
    def connections(self) -> Connections:
        """Connections to the API servers, as the administrator."""
        return Connections([over_ssh(one.hostname, partial(self.command, one)) for one in self._machines])

    def attach(self, words: Sequence[str], *, terminal: bool) -> int:
        """Runs kubectl on a control-plane node with this process's input and output, and returns its exit status.

        terminal: allocate a terminal there, on which sudo may ask for its password. Raises NoClusterError.
        """
        argv, prefix, environment = self.kubectl(words, terminal=terminal)
        return proc.attached(argv, env=environment, prefix=prefix)

    def kubectl(self, words: Sequence[str], *, terminal: bool) -> tuple[list[str], str, dict[str, str]]:
        """The ssh command that runs kubectl there, the prefix of its input, and its environment."""
        connections = self.connections
        # The first request finds a control plane that answers, before kubectl starts on it.
        host = connections.send(ApiRequest("get /readyz", "/readyz", accept="*/*"), ()).host
        connections.close()
        machine = next(machine for machine in self._machines if machine.hostname == host)
        sudo, prefix = (["sudo", "--"], "") if terminal and sudo_words(machine)[0] else sudo_words(machine)
        command = [*_KUBECTL, *words]
        if prefix:
            # a sudo that asks for no password leaves it in the input, where kubectl must not read it
            command, prefix = ["/bin/sh", "-c", _SKIP, "sh", *command], f"{prefix}{relay.BEGIN}\n"
        argv = ["ssh", "-t" if terminal else "-T", *self.options(machine), machine.hostip, "--"]
        argv.append(shlex.join([*sudo, *command]))
        return argv, prefix, self.environment(machine)

    def command(self, machine: Machine, *program: str) -> SshCommand:
        """Returns the ssh command that runs the relay there: to the API server, or to a program."""
        sudo, prefix = sudo_words(machine)
        there = f"{shlex.join(sudo)} {relay_words(*program)}".strip()
        argv = ("ssh", "-T", *self.options(machine), machine.hostip, "--", there)
        return SshCommand(argv, self.environment(machine), prefix)

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


def ssh_options(machine: Machine, options: Sequence[str]) -> list[str]:
    """The words for ssh: where a machine is, as whom, and those options."""
    # Without BatchMode, ssh may ask for a passphrase on the terminal and wait.
    login = ["PasswordAuthentication=no", "KbdInteractiveAuthentication=no", "BatchMode=yes"]
    if machine.ssh.password is not None:
        # ssh asks three times by default, and would send a wrong password each time.
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
        # -n: sudo fails at once instead of asking for a password.
        return ["sudo", "-n", "--"], ""
    # -S reads the password from the input. An empty prompt leaves the errors readable.
    return ["sudo", "-S", "-p", "", "--"], machine.ssh.password.get_secret_value() + "\n"
