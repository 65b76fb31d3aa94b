"""Whatever happens to whichever machine, a run keeps its promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pai_install.errors import ExitCode, PaiError
from pai_install.report.data import run_report
from pai_install.report.html import html
from pai_install.report.markdown import markdown
from pai_install.report.model import HostStatus, Outcome
from pai_install.report.notices import HostFinished, PhaseFinished, RunFinished
from pai_install.report.words import headline
from tests.unit.runs import SECRET, Listener, ScriptedEngine, done, event, phase, plan_of, run_of

HOSTS = ("master", "one", "two")
NAMES = ("base", "time", "runtime", "workers")
FATES = ("ok", "changed", "failed", "unreachable", "skipped", "rescued", "ctrl-c", "crash")


@dataclass(frozen=True)
class Story:
    """phases: name -> hosts, needs. fates: (playbook, host) -> what happens there."""

    phases: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
    fates: dict[tuple[str, str], str]

    @property
    def plan(self) -> Any:
        """The plan."""
        return plan_of(*(phase(name, *hosts, needs=needs) for name, hosts, needs in self.phases))

    @property
    def engine(self) -> ScriptedEngine:
        """An engine on which the fates come true."""
        return ScriptedEngine({f"{name}.yml": self._script(name) for name in NAMES})

    def _script(self, name: str) -> list[Any]:
        steps: list[Any] = []
        fates = {host: self.fates.get((name, host), "ok") for host in HOSTS}
        for host, fate in fates.items():
            if fate in ("ctrl-c", "crash") and any(host in hosts for known, hosts, _ in self.phases if known == name):
                steps.append(KeyboardInterrupt() if fate == "ctrl-c" else PaiError(f"broke: {SECRET}"))
            elif fate == "rescued":
                steps += [event("failed", host, msg="tried"), event("ok", host, "mend")]
            elif fate in ("failed", "unreachable"):
                steps.append(event(fate, host, f"Use {SECRET}", msg=f"no {SECRET}"))
            elif fate not in ("ctrl-c", "crash"):
                steps.append(event(fate, host))
        return done(*steps, failures=[host for host in HOSTS if fates[host] == "failed"],
                    dark=[host for host in HOSTS if fates[host] == "unreachable"])  # fmt: skip


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Up to four phases on some of three machines, each of which may meet any fate."""
    count = draw(st.integers(0, len(NAMES)))
    phases = []
    for number, name in enumerate(NAMES[:count]):
        hosts = draw(st.lists(st.sampled_from(HOSTS), min_size=1, unique=True))
        needs = draw(st.lists(st.sampled_from(NAMES[:number]), unique=True)) if number else []
        phases.append((name, tuple(hosts), tuple(needs)))
    places = st.tuples(st.sampled_from(NAMES), st.sampled_from(HOSTS))
    return Story(tuple(phases), draw(st.dictionaries(places, st.sampled_from(FATES), max_size=4)))


def executed(story: Story, *, check: bool = False) -> tuple[Outcome, ScriptedEngine, Listener]:
    engine, listener = story.engine, Listener()
    return run_of(story.plan, engine, [listener], check=check), engine, listener


@given(stories())
def test_every_planned_machine_has_a_result_in_every_phase(story: Story) -> None:
    outcome, _, _ = executed(story)
    assert [(p.name, set(p.hosts)) for p in outcome.phases] == [(name, set(hosts)) for name, hosts, _ in story.phases]


@given(stories())
def test_a_machine_that_dropped_out_is_never_touched_again(story: Story) -> None:
    outcome, engine, _ = executed(story)
    asked = {request.playbook.removesuffix(".yml"): request.limit for request in engine.requests}
    out: set[str] = set()
    for phase_result in outcome.phases:
        assert not out & set(asked.get(phase_result.name, ()))
        out |= {host for host, result in phase_result.hosts.items() if not result.status.good
                and result.status is not HostStatus.LEFT}  # fmt: skip


@given(stories())
def test_a_machine_on_which_nothing_went_wrong_is_left_out_for_a_reason_only(story: Story) -> None:
    outcome, _, _ = executed(story)
    for phase_result in outcome.phases:
        for result in phase_result.hosts.values():
            assert (result.status is HostStatus.LEFT) == bool(result.why)
            assert (result.failure is not None) == (result.status in (HostStatus.FAILED, HostStatus.UNREACHABLE))


@given(stories())
def test_exit_code_is_ok_exactly_when_everything_is_done(story: Story) -> None:
    outcome, _, _ = executed(story)
    complete = all(result.status.good for phase_result in outcome.phases for result in phase_result.hosts.values())
    assert (outcome.exit_code is ExitCode.OK) == complete
    assert complete == (not outcome.left)


@given(stories())
def test_every_stream_is_closed_and_the_end_is_always_told(story: Story) -> None:
    outcome, engine, listener = executed(story)
    assert len(engine.closed) == len(engine.requests)
    assert listener.notices[-1] == RunFinished(outcome)
    assert len(listener.of(PhaseFinished)) == len(story.phases)
    ran = sum(len(request.limit) for request in engine.requests)
    assert len(listener.of(HostFinished)) >= ran


@given(stories())
def test_nothing_that_is_told_or_written_holds_the_secret(story: Story) -> None:
    outcome, _, listener = executed(story)
    forms = (
        repr(listener.notices),
        str(run_report(outcome).as_json()),
        markdown(outcome, title="t"),
        html(outcome, title="t"),
    )
    for text in (*forms, headline(outcome)):
        assert SECRET not in text


@given(stories())
def test_counts_are_those_of_the_events(story: Story) -> None:
    outcome, engine, _ = executed(story)
    if outcome.interrupted or outcome.error:
        return
    for host, counts in outcome.counts.items():
        events = [e for r in engine.requests if host in r.limit for e in engine.script[r.playbook]
                  if not isinstance(e, BaseException) and e.host == host]  # fmt: skip
        assert counts.tasks + counts.skipped == len(events)
        assert counts.tasks == counts.ok + counts.failed + counts.unreachable


@given(stories())
def test_check_runs_never_drop_a_machine_for_a_failing_task(story: Story) -> None:
    outcome, engine, _ = executed(story, check=True)
    assert all(request.check for request in engine.requests)
    if not outcome.interrupted and not outcome.error:
        fates = set(story.fates.values())
        left = [result for p in outcome.phases for result in p.hosts.values() if result.status is HostStatus.LEFT]
        assert not left or "unreachable" in fates
