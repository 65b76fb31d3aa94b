"""A missing value is never good, however a check looks at it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import BaseModel

from pai_install.checks.check import Check
from pai_install.checks.evidence import NotObservedError, Record, peek, require, viewed
from pai_install.checks.result import Result, failed, passed
from pai_install.checks.runner import force, results, run_checks
from pai_install.checks.verdict import Verdict


class Disk(BaseModel):
    path: str
    free: int = 0


class Machine(BaseModel):
    name: str | None = None
    kernel: str = ""
    disks: tuple[Disk, ...] | None = None
    answers: Mapping[str, Disk] | None = None

    @property
    def shout(self) -> str:
        return (self.name or "").upper()


FULL = Machine(
    name="one",
    kernel="6.1",
    disks=(Disk(path="/", free=3),),
    answers={"two": Disk(path="/", free=4)},
)


def settled(machine: Machine, judge: object) -> Result:
    record = Record()
    return record.settle(judge(viewed(machine, record)))  # type: ignore[operator]


def test_what_is_there_passes_and_is_recorded() -> None:
    record = Record()
    seen = viewed(FULL, record)
    assert (seen.kernel, seen.shout) == ("6.1", "ONE")
    assert seen.disks is not None
    assert [disk.free for disk in seen.disks] == [3]
    assert seen.answers is not None
    assert seen.answers["two"].free == 4
    assert record.names == ("kernel", "name", "disks", "disks.free", "answers", "answers.free")
    assert record.settle(passed()).verdict is Verdict.PASS


@pytest.mark.parametrize("field", ["name", "kernel", "disks", "answers"])
def test_a_value_that_nobody_gave_is_no_pass_although_a_default_stands_there(field: str) -> None:
    machine = Machine(**{name: value for name, value in FULL.model_dump().items() if name != field})
    result = settled(machine, lambda seen: passed(getattr(seen, field)))
    assert (result.verdict, result.message) == (Verdict.UNKNOWN, f"no evidence of {field}")


def test_a_value_within_a_list_is_as_much_evidence() -> None:
    machine = Machine(disks=(Disk(path="/"),))
    result = settled(machine, lambda seen: passed(seen.disks[0].free))
    assert (result.verdict, result.message) == (Verdict.UNKNOWN, "no evidence of disks.free")


def test_a_property_reads_as_a_check_does() -> None:
    assert settled(Machine(), lambda seen: passed(seen.shout)).verdict is Verdict.UNKNOWN


def test_a_failure_stays_one_beside_a_gap() -> None:
    assert settled(Machine(), lambda seen: failed("bad", seen.kernel)).verdict is Verdict.FAIL


def test_a_look_that_chooses_what_to_read_does_not_count() -> None:
    record = Record()
    assert peek(viewed(Machine(), record)).kernel == ""
    assert record.settle(passed()).verdict is Verdict.PASS
    assert peek(FULL) is FULL


def test_unknown_is_graver_than_what_cannot_be_there() -> None:
    record = Record()
    record.gap("fan", "this GPU has no fan", verdict=Verdict.SKIP)
    assert record.settle(passed()) == Result(Verdict.SKIP, "this GPU has no fan")
    record.gap("power", "power reads ERR!")
    assert record.settle(passed()) == Result(Verdict.UNKNOWN, "power reads ERR!")
    record.begin()
    assert record.settle(passed()).verdict is Verdict.PASS


def test_a_part_that_is_missing_says_why() -> None:
    with pytest.raises(NotObservedError, match="no evidence of etcd disk: only root may see it"):
        require(None, "etcd_disk", "only root may see it")


def judge(seen: Machine) -> Result | None:
    if peek(seen).name == "none":
        return None
    require(seen.disks, "disks")
    return passed(seen.kernel)


CHECK = Check("kernel", "The kernel is new", judge, reads="uname", source="own")


def findings(machine: Machine) -> list[tuple[Verdict, str, str]]:
    record = Record()
    found = run_checks([CHECK], viewed(machine, record), "one", record)
    return [(finding.verdict, finding.message, finding.evidence) for finding in found]


def test_the_runner_keeps_the_law() -> None:
    assert findings(FULL) == [(Verdict.PASS, "The kernel is new", "uname")]
    assert findings(Machine(disks=())) == [(Verdict.UNKNOWN, "no evidence of kernel", "disks, kernel")]
    assert findings(Machine(kernel="6.1")) == [(Verdict.UNKNOWN, "no evidence of disks: not collected", "disks")]
    assert findings(Machine(name="none")) == []


def test_a_check_may_say_several_things() -> None:
    assert len(results(lambda: [passed(1), failed("two")])) == 2


def test_a_forced_failure_warns() -> None:
    bad = CHECK.finding("one", failed("too old"))
    assert force([bad], ["kernel"])[0].verdict is Verdict.WARN
    assert force([bad], ["other"]) == (bad,)
