"""How calls of kubectl reach a cluster, whatever carries them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Call:
    """One call of kubectl. argv: without the program and its kubeconfig.

    may_fail: its failure is an answer. reads: it changes nothing, so it may be made again elsewhere. program: another
    program in place of kubectl.
    """

    argv: tuple[str, ...]
    stdin: str = ""
    may_fail: bool = False
    reads: bool = False
    timeout_s: float = 60.0
    program: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """How one call ended. returncode: None when it was stopped, because it took too long or said too much."""

    returncode: int | None
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Returns whether the call succeeded."""
        return self.returncode == 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The answers of one round trip, up to the first failure of a call that may not fail. host: who gave them."""

    host: str
    answers: tuple[Answer, ...]


class Transport(Protocol):
    """Carries calls to the first control plane that answers."""

    def run(self, calls: Sequence[Call]) -> Reply:
        """Makes the calls in order. Raises NoClusterError when none answers, PaiError when an answer is lost."""
        ...

    def lines(self, call: Call) -> Generator[str]:
        """Yields the output of one reading call line by line. Closing the generator ends the call.

        Raises NoClusterError if no control-plane node responds, and ApiError if the call fails.
        """
        ...
