"""The rule of evidence: a missing value is never good.

A check reads through a view that records its reads. A missing value is recorded as a gap or raises NotObservedError. A
PASS with a gap becomes UNKNOWN or SKIP, whatever the check's author intended.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from pai_install.checks.result import Result
from pai_install.checks.verdict import Verdict

Part = TypeVar("Part")


class NotObservedError(Exception):
    """Evidence that a check needs is missing. `verdict` is SKIP or UNKNOWN. value: the value found instead."""

    def __init__(self, verdict: Verdict, reason: str, value: str = "") -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason
        self.value = value

    @property
    def result(self) -> Result:
        """Returns the conclusion of the check."""
        return Result(self.verdict, self.reason, self.value)


class Record:
    """The values that one check has read, and the missing ones."""

    __slots__ = ("_gaps", "_read", "_sources")

    def __init__(self) -> None:
        self._read: dict[str, None] = {}
        self._gaps: dict[str, NotObservedError] = {}
        self._sources: dict[str, str] = {}

    def begin(self) -> None:
        """Clears the record of the previous check."""
        self._read.clear()
        if self._gaps:
            self._gaps.clear()
        if self._sources:
            self._sources.clear()

    def read(self, name: str) -> None:
        """Notes that a value was read."""
        self._read[name] = None

    def gap(self, name: str, reason: str = "", *, verdict: Verdict = Verdict.UNKNOWN, value: str = "") -> None:
        """Records a missing value. verdict: UNKNOWN, or SKIP if it cannot exist.

        value: the value found instead.
        """
        self._read[name] = None
        self._gaps.setdefault(name, NotObservedError(verdict, reason or f"no evidence of {name}", value))

    def limit(self, name: str, source: str) -> None:
        """Records the use of a threshold and its origin."""
        self._sources[name] = source

    def settle(self, result: Result) -> Result:
        """Returns the result, or for a PASS with missing evidence the worst gap."""
        if not self._gaps or result.verdict is not Verdict.PASS:
            return result
        gaps = list(self._gaps.values())
        # An UNKNOWN gap may hide a fault, and a SKIP gap cannot. So UNKNOWN is the answer if both are there.
        return next((gap for gap in gaps if gap.verdict is Verdict.UNKNOWN), gaps[0]).result

    @property
    def complete(self) -> bool:
        """Whether nothing that was read is missing."""
        return not self._gaps

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the values read, in order."""
        return tuple(self._read)

    @property
    def evidence(self) -> str:
        """Returns the names of the values read, as a sentence."""
        return ", ".join(self._read)

    @property
    def source(self) -> str:
        """Returns the origins of the used thresholds, or ""."""
        if not self._sources:
            return ""
        return "; ".join([f"{name}: {source}" for name, source in self._sources.items()])


class _View:
    """Stands for a pydantic model: has its fields, properties and methods, and notes every field that is read."""

    def __init__(self, model: BaseModel, record: Record, path: str) -> None:
        self._model = model
        self._record = record
        self._path = path

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the field's type, as `viewed` says
        kind = type(self._model)
        if name not in kind.model_fields:
            return self._computed(kind, name)
        path = f"{self._path}.{name}" if self._path else name
        value = getattr(self._model, name)
        if value is None or name not in self._model.model_fields_set:
            self._record.gap(path)
            return value
        return _wrapped(value, self._record, path)

    def _computed(self, kind: type[BaseModel], name: str) -> Any:  # noqa: ANN401
        """Returns a property computed through the view, so that its reads are recorded, or else an attribute of the
        model.
        """
        found = getattr(kind, name)
        if isinstance(found, property) and found.fget is not None:
            return found.fget(self)
        if isinstance(found, cached_property):
            return found.func(self)
        return getattr(self._model, name)


def _wrapped(value: object, record: Record, path: str) -> object:
    if isinstance(value, BaseModel):
        return _View(value, record, path)
    record.read(path)
    if isinstance(value, tuple):
        return tuple(_wrapped(item, record, path) if isinstance(item, BaseModel) else item for item in value)
    if isinstance(value, Mapping):
        return {key: _wrapped(item, record, path) if isinstance(item, BaseModel) else item
                for key, item in value.items()}  # fmt: skip
    return value


def viewed(model: Part, record: Record, path: str = "") -> Part:
    """The model as a check sees it: each field that it reads is noted in `record`, as "part.field".

    A field that is None, or that was never given to the model (its default stands there), is a gap.
    """
    assert isinstance(model, BaseModel)  # noqa: S101 - a view of anything else would record nothing
    return cast("Part", _View(model, record, path))


def peek(part: Part) -> Part:
    """Returns the model behind a view without recording. Use it to choose values, never for a verdict."""
    return cast("Part", part._model) if isinstance(part, _View) else part  # noqa: SLF001 - its own other half


def require(part: Part | None, name: str, why: str = "not collected") -> Part:
    """A part of the evidence. Raises NotObservedError when it is missing."""
    if part is None:
        raise NotObservedError(Verdict.UNKNOWN, f"no evidence of {name.replace('_', ' ')}: {why}")
    return part
