"""Output of programs that only read, on any machine of the site: journals, and the ledgers of control planes."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from pai_install.cluster import relay
from pai_install.cluster.over_ssh import SshLogins
from pai_install.errors import ExitCode, PaiError
from pai_install.site.model import Machine, Site
from pai_install.system import proc
from pai_install.system.plain import one_line, plain_text

_SSH_FAILED = 255
_MOST_WORDS = 2000


class MachineError(PaiError):
    """A machine is unreachable, or its program failed. host: its name."""

    def __init__(self, host: str, why: str, *, unreachable: bool) -> None:
        what = "connect to" if unreachable else "read from"
        last = one_line((why.strip().splitlines() or ["no message"])[-1])
        super().__init__(
            f"cannot {what} {host}: {last}",
            code="machine-unreachable" if unreachable else "machine-not-read",
            details=why,
            remedy="pai-install status",
            exit_code=ExitCode.UNREACHABLE if unreachable else ExitCode.STEP_FAILED,
        )
        self.host = host
        self.unreachable = unreachable


class Machines(Protocol):
    """The machines of a site. Several threads may read at a time."""

    def lines(self, host: str, program: Sequence[str]) -> Generator[str]:
        """Yields the output of a program that runs as root, line by line. Closing the generator ends the program.

        program: must change nothing on the machine. Raises MachineError.
        """
        ...


@contextmanager
def open_machines(site: Site, known_hosts: Path, *, accept_new: bool = False) -> Iterator[Machines]:
    """Yields the machines of the site. Each is connected on its first request. See open_cluster."""
    with ExitStack() as stack:
        logins = SshLogins(site.present_machines, known_hosts, stack, accept_new=accept_new)
        yield SshMachines({machine.hostname: machine for machine in site.present_machines}, logins)


class SshMachines:
    """The machines over OpenSSH. machines: by their names."""

    def __init__(self, machines: Mapping[str, Machine], logins: SshLogins) -> None:
        self._machines = machines
        self._logins = logins

    def lines(self, host: str, program: Sequence[str]) -> Generator[str]:
        """Yields the lines. See Machines.lines."""
        ssh = self._logins.command(self._machines[host], *program)
        empty = True
        try:
            for line in proc.lines(ssh.argv, stdin=f"{ssh.prefix}{relay.BEGIN}\n", env=ssh.environment):
                empty = False
                yield line
        except proc.FailedError as error:
            why = plain_text(error.completed.stderr.strip()[-_MOST_WORDS:])
            away = empty and error.completed.returncode == _SSH_FAILED
            raise MachineError(host, why, unreachable=away) from error
