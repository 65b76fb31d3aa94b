"""A transport that gives prepared answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from pai_install.cluster.transport import Answer, Call, Reply

Answering = Callable[[Call], Answer]


def said(stdout: str = "", *, rc: int | None = 0, err: str = "") -> Answer:
    """An answer."""
    return Answer(rc, stdout, err)


@dataclass
class ScriptedTransport:
    """Answers by a function of the call, or in order. trips: the calls of each round trip."""

    answers: Answering | Sequence[Answer]
    trips: list[tuple[Call, ...]] = field(default_factory=list)
    printed: Sequence[str] = ()

    def run(self, calls: Sequence[Call]) -> Reply:
        """The answers up to the first failure of a call that may not fail."""
        self.trips.append(tuple(calls))
        found: list[Answer] = []
        for number, call in enumerate(calls):
            found.append(self.answers(call) if callable(self.answers) else self.answers[number])
            if not (found[-1].ok or call.may_fail):
                break
        return Reply("master", tuple(found))

    def lines(self, call: Call) -> Generator[str]:
        """The prepared lines."""
        self.trips.append((call,))
        yield from self.printed

    @property
    def calls(self) -> list[Call]:
        """Every call so far."""
        return [call for trip in self.trips for call in trip]
