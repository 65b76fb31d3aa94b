"""A check is its function with everything that is said of it."""

from __future__ import annotations

from types import ModuleType

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.check import Check, check, declared, unique
from pai_install.checks.explain import explain, find_check, list_checks
from pai_install.checks.limits import Limit, Limits
from pai_install.checks.result import Result, failed, passed, unknown, warned
from pai_install.checks.verdict import Action, Verdict
from tests.errors import raises


@check(
    id="heat",
    title="Not too hot",
    reads="nvidia-smi",
    rule="FAIL above hot",
    limits=("hot",),
    source="NVIDIA",
    remedy="cool it",
    action=Action.DRAIN,
)
def heat(celsius: int) -> Result:
    return failed("too hot", celsius) if celsius > 90 else passed(celsius)


def test_a_failure_takes_what_the_check_declares() -> None:
    found = heat.finding("one", heat.judge(95), device="gpu0")
    assert (found.id, found.verdict, found.where, found.value) == ("heat", Verdict.FAIL, "one gpu0", "95")
    assert (found.remedy, found.action, found.source, found.evidence) == (
        "cool it", Action.DRAIN, "NVIDIA", "nvidia-smi",
    )  # fmt: skip


def test_a_result_that_knows_better_wins() -> None:
    result = failed("melted", remedy="replace it", action=Action.RMA, device="fan")
    found = heat.finding("one", result, device="gpu0", source="site", evidence="log")
    assert (found.remedy, found.action, found.device) == ("replace it", Action.RMA, "fan")
    assert (found.source, found.evidence) == ("site", "log")


def test_a_pass_says_the_title_and_asks_for_nothing() -> None:
    found = heat.finding("one", heat.judge(20))
    assert (found.message, found.remedy, found.action) == ("Not too hot", "", Action.NONE)


def test_a_warning_has_the_remedy_but_no_action_of_a_failure() -> None:
    found = heat.finding("one", warned("warm"))
    assert (found.remedy, found.action) == ("cool it", Action.NONE)
    assert heat.finding("one", unknown("nobody looked")).remedy == ""


def test_checks_of_a_module_are_found_in_their_order() -> None:
    module = ModuleType("rules")
    vars(module).update(second=Check("b", "B", None), first=heat, alias=heat, other=3)
    assert [found.id for found in declared(module)] == ["b", "heat"]


def test_two_checks_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two checks are called heat"):
        unique([heat, Check("heat", "Another", None)])


def test_explain_tells_everything_with_the_numbers_of_the_site(snapshot: SnapshotAssertion) -> None:
    limits = Limits({"hot": Limit(90, "NVIDIA")}, site={"hot": Limit(80, "site, thresholds")})
    assert str(explain(heat, "health", limits)).splitlines() == snapshot


def test_a_word_nearly_right_is_helped_on(snapshot: SnapshotAssertion) -> None:
    with raises("unknown-check") as error:
        find_check("haet", {"heat": heat})
    assert error.value.remedy == snapshot
    assert find_check("heat", {"heat": heat}) is heat
    assert list_checks([heat]) == snapshot
