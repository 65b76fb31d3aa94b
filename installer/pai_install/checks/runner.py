"""Runs checks under the rule of evidence, and applies --force-check. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

from pai_install.checks.check import Check
from pai_install.checks.evidence import NotObservedError, Record
from pai_install.checks.finding import Finding
from pai_install.checks.result import Result
from pai_install.checks.verdict import CALM, Verdict
from pai_install.errors import ExitCode, PaiError
from pai_install.system.plain import one_line

Subject = TypeVar("Subject")
# what code runs into that takes a value for what it is not
ODD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
Answer = Result | Iterable[Result] | None


def run_checks(
    checks: Iterable[Check[Callable[[Subject], Answer]]], subject: Subject, name: str, record: Record
) -> Iterator[Finding]:
    """Yields the findings of all checks on one subject. A check that does not apply returns None.

    name: of the subject in findings. record: the record of the subject's views.
    """
    for item in checks:
        record.begin()
        for result in results(item.judge, subject):
            settled = record.settle(result)
            evidence = "" if settled.verdict in CALM else record.evidence
            yield item.finding(name, settled, source=record.source, evidence=evidence)


def results(judge: Callable[..., Answer], *subjects: Any) -> tuple[Result, ...]:  # noqa: ANN401 - the judge's own
    """Returns the results of a check's function as a tuple. A gap ends the tuple as its last result.

    Unparsable evidence does too: it must not end the other checks.
    """
    found: list[Result] = []
    try:
        answer = judge(*subjects)
        if answer is None:
            return ()
        if isinstance(answer, Result):
            return (answer,)
        for result in answer:  # one by one: what was found before a gap stays found
            found.append(result)  # noqa: PERF402
    except NotObservedError as gap:
        found.append(gap.result)
    except ODD as error:
        found.append(broken(error))
    return tuple(found)


def broken(error: Exception) -> Result:
    """Returns the result of a check with unparsable evidence."""
    detail = one_line(f"{type(error).__name__}: {error}")[:200]
    return Result(Verdict.UNKNOWN, "what the machine says cannot be judged", detail)


def require_known(forced: Collection[str], known: Collection[str]) -> None:
    """Raises PaiError for a word of --force-check that is no check."""
    strange = [name for name in forced if name not in known]
    if strange:
        raise PaiError(
            f"cannot override {', '.join(strange)}: there is no such check",
            code="force-check-unknown",
            remedy=f"choose from: {', '.join(sorted(known))}",
            exit_code=ExitCode.USAGE,
        )


def force(findings: Iterable[Finding], forced: Collection[str]) -> tuple[Finding, ...]:
    """The findings with each FAIL of a forced check made a WARN that says so."""
    return tuple(
        finding._replace(verdict=Verdict.WARN, message=f"{finding.message} (forced)")
        if finding.verdict is Verdict.FAIL and finding.id in forced
        else finding
        for finding in findings
    )
