"""The declaration of a check, by keyword, beside its function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, NotRequired, TypedDict, TypeVar, Unpack

from pai_install.checks.finding import Finding
from pai_install.checks.result import Result
from pai_install.checks.verdict import Action, Verdict

Judge = TypeVar("Judge")
_Judge = TypeVar("_Judge", covariant=True)  # noqa: PLC0105 - the same, for those that only read it


class Words(TypedDict):
    """What is declared of a check.

    id: kebab-case, unique in its room. title: what must be so. reads: what it looks at, in words. rule: when it
    FAILs, WARNs, SKIPs. limits: names of the thresholds that it compares with. source: whose rule it is
    (abbreviations in docs/health.md). remedy: what to do unless the function says better. action: of a FAIL.
    about: the kind of subject it is asked about, where a room has several: "machine", "gpu", "fleet".
    """

    id: str
    title: str
    reads: NotRequired[str]
    rule: NotRequired[str]
    limits: NotRequired[tuple[str, ...]]
    source: NotRequired[str]
    remedy: NotRequired[str]
    action: NotRequired[Action]
    about: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Check(Generic[_Judge]):
    """A declared check and the function that judges; None where the check runs on a machine, in a module."""

    id: str
    title: str
    judge: _Judge
    reads: str = ""
    rule: str = ""
    limits: tuple[str, ...] = ()
    source: str = "own"
    remedy: str = ""
    action: Action = Action.CONFIG
    about: str = "machine"

    def finding(
        self, subject: str, result: Result, *, device: str = "", source: str = "", evidence: str = ""
    ) -> Finding:
        """The result as a finding about `subject`; what the result leaves open is the check's own.

        source: whose limits were compared with. evidence: what was read. Both only where it is known better.
        """
        sick = result.verdict in (Verdict.FAIL, Verdict.WARN)
        action = self.action if result.action is None else result.action
        return Finding(
            self.id,
            result.verdict,
            subject,
            result.message or self.title,
            result.value,
            result.expected,
            result.remedy or (self.remedy if sick else ""),
            result.device or device,
            action if sick else Action.NONE,
            source or self.source,
            evidence or self.reads,
        )


def check(**words: Unpack[Words]) -> Callable[[Judge], Check[Judge]]:
    """Declares the function below as a check. A room gives it the type of its own functions."""

    def declare(judge: Judge) -> Check[Judge]:
        return Check(judge=judge, **words)

    return declare


def declared(*modules: ModuleType) -> tuple[Check[Any], ...]:
    """Every check of the modules, in the order of their lines. Raises ValueError when two have one id."""
    checks = [value for module in modules for value in vars(module).values() if isinstance(value, Check)]
    return unique(dict.fromkeys(checks))


def unique(checks: Iterable[Check[Any]]) -> tuple[Check[Any], ...]:
    """The checks. Raises ValueError when two have one id."""
    found: dict[str, Check[Any]] = {}
    for item in checks:
        if found.setdefault(item.id, item) is not item:
            raise ValueError(f"two checks are called {item.id}")
    return tuple(found.values())
