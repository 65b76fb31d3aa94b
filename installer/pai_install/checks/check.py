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
# Python 3.11 runs code for each use of Verdict.FAIL, and a thousand machines have a third of a million findings
_SICK = frozenset((Verdict.FAIL, Verdict.WARN))
_NO_ACTION = Action.NONE
_Judge = TypeVar("_Judge", covariant=True)  # noqa: PLC0105 - the same, for those that only read it


class Words(TypedDict):
    """The declaration of a check.

    id: kebab-case, unique in its package. title: the desired state. reads: its evidence. rule: conditions of FAIL,
    WARN, SKIP. limits: names of its thresholds. source: origin of the rule (abbreviations in docs/health.md). remedy:
    default remedy. action: of a FAIL. about: kind of its subject, if the package has several: "machine", "gpu",
    "fleet".
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
    """A declared check and its function. None if a module runs the check on a machine."""

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
        """Returns the result as a finding about `subject`, with defaults from the check.

        source: origin of the thresholds. evidence: the values read. Both only if the caller knows better.
        """
        verdict, message, value, expected, own_device, action, remedy = result
        if verdict in _SICK:
            remedy = remedy or self.remedy
            action = self.action if action is None else action
        else:
            action = _NO_ACTION
        return Finding(
            self.id,
            verdict,
            subject,
            message or self.title,
            value,
            expected,
            remedy,
            own_device or device,
            action,
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
