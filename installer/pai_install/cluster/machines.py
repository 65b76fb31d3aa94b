"""Output of programs that only read, on any machine of the site: journals, and the ledgers of control planes."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from pai_install.cluster.client import ApiError, NoClusterError
from pai_install.cluster.over_ssh import SshTransport
from pai_install.cluster.transport import Call
from pai_install.errors import ExitCode, PaiError
from pai_install.site.model import Site
from pai_install.system.plain import one_line


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

        program: must only read. Raises MachineError.
        """
        ...


@contextmanager
def open_machines(site: Site, known_hosts: Path, *, accept_new: bool = False) -> Iterator[Machines]:
    """Yields the machines of the site. Each is connected on its first request. See open_cluster."""
    with ExitStack() as stack:
        yield SshMachines(
            {
                machine.hostname: SshTransport([machine], known_hosts, stack, accept_new=accept_new)
                for machine in site.present_machines
            }
        )


class SshMachines:
    """The machines over OpenSSH. transports: host -> its connection."""

    def __init__(self, transports: Mapping[str, SshTransport]) -> None:
        self._transports = transports

    def lines(self, host: str, program: Sequence[str]) -> Generator[str]:
        """Yields the lines. See Machines.lines."""
        try:
            yield from self._transports[host].lines(Call((), reads=True, program=tuple(program)))
        except NoClusterError as error:
            raise MachineError(host, error.down[host], unreachable=True) from error
        except ApiError as error:
            raise MachineError(host, error.details, unreachable=False) from error
