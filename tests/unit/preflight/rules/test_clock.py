"""Clocks: a verdict is never harsher than what was proven."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.preflight.evidence import Clock
from pai_install.preflight.judge import judge
from pai_install.preflight.rules.clock import Offset, offset_to_box
from pai_install.site import Site
from tests.unit.preflight.machines import findings_of, fleet, timed


def clocks(site: Site, ahead: dict[str, float], took: float = 2.2) -> dict[str, Finding]:
    """What is said of machines whose clocks are ahead of the controller host's by so many seconds."""
    seen = {name: timed(one, ahead=ahead.get(name, 0.0), took=took) for name, one in fleet().items()}
    return {finding.subject: finding for finding in judge(site, seen, {}) if finding.id == "clock"}


@pytest.mark.parametrize(
    ("ahead", "verdict"),
    [
        (0.0, "PASS"),
        (1.0, "PASS"),
        (-1.0, "PASS"),
        (4.0, "WARN"),
        (-4.0, "WARN"),
        (29, "WARN"),
        (40, "FAIL"),
        (-40, "FAIL"),
    ],
)
def test_a_worker_against_the_first_control_plane(site: Site, ahead: float, verdict: str) -> None:
    found = clocks(site, {"worker1": ahead})
    assert found["worker1"].verdict == verdict
    assert found["master"].verdict is found["worker2"].verdict is Verdict.PASS
    if verdict != "PASS":
        assert ("ahead of" if ahead > 0 else "behind") in found["worker1"].message
        assert "master" in found["worker1"].message


def test_machines_that_agree_with_each_other_but_not_with_this_box(site: Site) -> None:
    found = clocks(site, dict.fromkeys(("master", "worker1", "worker2"), 3600.0))
    assert [found[name].verdict for name in ("master", "worker1", "worker2")] == ["FAIL", "PASS", "PASS"]
    assert "controller host" in found["master"].message


def test_without_the_control_plane_this_box_is_the_measure(site: Site) -> None:
    seen = {name: timed(one, ahead=60 if name == "worker1" else 0) for name, one in fleet().items() if name != "master"}
    found = {item.subject: item for item in judge(site, seen, {"master": "off"}) if item.id == "clock"}
    assert [found[name].verdict for name in ("worker1", "worker2")] == ["FAIL", "PASS"]


def test_a_slow_answer_proves_little(site: Site) -> None:
    """Twenty seconds on the way: a clock 9 s off may as well be right."""
    assert clocks(site, {"master": 9.0}, took=22.0)["master"].verdict is Verdict.PASS
    assert clocks(site, {"master": 60.0}, took=22.0)["master"].verdict is Verdict.FAIL


def test_an_answer_that_was_not_timed_is_unknown(site: Site) -> None:
    seen = fleet()
    assert seen["worker1"].clock is not None
    clock = seen["worker1"].clock.model_copy(update={"requested": None})
    seen["worker1"] = seen["worker1"].model_copy(update={"clock": clock})
    found = {item.subject: item.verdict for item in judge(site, seen, {}) if item.id == "clock"}
    assert found == {"master": "PASS", "worker1": "UNKNOWN", "worker2": "PASS"}


@given(
    ahead=st.floats(-1e5, 1e5),
    there=st.floats(0, 30),
    work=st.floats(0, 30),
    back=st.floats(0, 30),
    requested=st.floats(1e9, 2e9),
)
def test_the_truth_is_always_inside(ahead: float, there: float, work: float, back: float, requested: float) -> None:
    began = requested + there + ahead
    clock = Clock(began=began, ended=began + work, requested=requested, answered=requested + there + work + back)
    found = offset_to_box(clock)
    assert found is not None
    assert found.low <= ahead <= found.high
    assert found.proven <= abs(ahead)
    assert found.high - found.low <= there + back + 0.7


def test_differences_keep_their_doubt() -> None:
    apart = Offset(1.0, 2.0) - Offset(-1.0, 0.5)
    assert (apart.low, apart.high, apart.proven) == (0.5, 3.0, 0.5)
    assert Offset(-9.0, -4.0).proven == 4.0
    assert str(Offset(1.0, 2.0)) == "+1.5 s ± 0.5 s"


@pytest.mark.parametrize(
    ("time", "verdict"),
    [
        ({"services": ["chrony"], "synchronised": True}, "PASS"),
        ({"services": ["chrony"], "synchronised": None, "chrony": "Normal"}, "PASS"),
        ({"services": ["chrony"], "synchronised": False, "chrony": "Not synchronised"}, "WARN"),
        ({"services": []}, "WARN"),
    ],
)
def test_time_service(site: Site, time: dict[str, object], verdict: str) -> None:
    assert findings_of(site, "time-service", {"worker1": {"time": time}})["worker1"].verdict == verdict


def test_a_container_keeps_no_time(site: Site) -> None:
    changes = {"worker1": {"time": {"services": []}, "identity": {"container": "lxc"}}}
    assert findings_of(site, "time-service", changes)["worker1"].verdict is Verdict.SKIP
