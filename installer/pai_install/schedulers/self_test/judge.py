"""What recordings say of a scheduler's promises: a finding for each. Pure.

A promise that was not seen to be kept is never kept: what could not be tried is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pai_install.checks.finding import Finding
from pai_install.checks.result import Result, failed, passed, unknown
from pai_install.checks.verdict import Action, Verdict
from pai_install.schedulers.self_test.guarantees import PROMISES, START, Promise
from pai_install.schedulers.self_test.model import Recording, Sample, Scenario

# pods of a gang get their places one after the other, within this time
PLACING_S = 10.0
# a gang that is evicted ends within this time; some are evicted pod by pod before they are restarted whole
LEAVING_S = 20.0
SUBJECT = "cluster"


@dataclass(frozen=True, slots=True)
class Play:
    """A scenario and what was seen of it. back_s: in which an owner has its own again."""

    scenario: Scenario
    recording: Recording
    back_s: float = 30.0

    def size(self, gang: str) -> int:
        """Pods of a gang."""
        return self.scenario.gangs[gang].size

    def missed(self, scene: str) -> bool:
        """Whether the scenario ended in that scene."""
        return self.recording.missed == scene

    def why(self, scene: str) -> str:
        """What was said of jobs that waited in a scene: by the scheduler, else by the pods."""
        mark = self.recording.mark(scene)
        said = [seen.why for sample in self.recording.during(scene)[-1:] for seen in sample.gangs.values()]
        return (mark.why if mark else "") or next(filter(None, said), "")

    def took(self, scene: str) -> float:
        """Seconds until a scene was met; -1 where it was not."""
        mark = self.recording.mark(scene)
        return -1.0 if mark is None or mark.met_s is None else mark.met_s - mark.began_s

    def most(self, scene: str, *gangs: str) -> int:
        """The most units that gangs held at once in a scene."""
        return max((sum(one.of(gang).held for gang in gangs) for one in self.recording.during(scene)), default=0)

    def partial_s(self, gang: str, *scenes: str) -> float:
        """The longest time for which a gang held some of its units and not all; of some scenes, or of all."""
        samples = [one for scene in scenes for one in self.recording.during(scene)] or self.recording.samples
        return _longest(samples, lambda one: 0 < one.of(gang).held < self.size(gang) - one.of(gang).ended)


def _longest(samples: Iterable[Sample], holds: Callable[[Sample], bool]) -> float:
    """The longest time for which something held, from the look that saw it first to that which no longer did."""
    longest, since = 0.0, None
    for one in samples:
        longest = max(longest, one.at_s - since) if since is not None else longest
        since = (one.at_s if since is None else since) if holds(one) else None
    return longest


def _kept(seen: str) -> Result:
    return passed(message=seen)


def _gang(play: Play) -> Result:
    held, size = play.most("wait", "whole"), play.size("whole")
    if held:
        return failed(f"{held} of {size} pods of a job started while there was no room for all", play.why("wait"))
    if play.missed("start"):
        return failed("a job did not start though there was room for all its pods", play.why("start"))
    if (half := play.partial_s("whole", "start")) > PLACING_S:
        return failed(f"a job held some of its devices for {half:.0f} s before it had all", expected=f"{PLACING_S:g} s")
    return _kept(f"0 of {size} pods while it waited; all {play.took('start'):.0f} s after room was made")


def _deadlock(play: Play) -> Result:
    names = tuple(play.scenario.gangs)
    for one in play.recording.during("both"):
        pair = [one.of(name) for name in names]
        if all(gang.held for gang in pair) and not any(gang.ended for gang in pair):
            held = " and ".join(f"{gang.held} of {play.size(name)}" for name, gang in zip(names, pair, strict=True))
            return failed("two jobs that have no room beside each other held devices at once", held)
    if play.missed("both"):
        return failed("two jobs that have no room beside each other did not both end", play.why("both"))
    return _kept(f"both ended within {play.took('both'):.0f} s, one after the other")


def _quota(play: Play) -> Result:
    (queue,) = play.scenario.queues
    held = max(play.most(scene, "first", "more") for scene in ("fill", "wait"))
    if held > queue.most:
        return failed("a queue held more than its quota", str(held), str(queue.most))
    if play.missed("start"):
        return failed("a job did not start when its queue had room again", play.why("start"))
    return _kept(f"{held} of {queue.most} while another job waited, which then started")


def _borrow(play: Play) -> Result:
    guest, guaranteed = play.size("guest"), next(one.units for one in play.scenario.queues if one.name == "guest")
    if play.missed("borrow"):
        return failed("a job did not get what another queue did not use", play.why("borrow"))
    took = play.took("borrow")
    return passed(
        message=f"{guest} units held with a guarantee of {guaranteed}, {took:.0f} s after they were asked for"
    )


def _reclaim(play: Play) -> Result:
    if play.missed("take back"):
        return failed("an owner did not get back what it had lent", play.why("take back"), f"{play.back_s:g} s")
    took = play.took("take back")
    if took > play.back_s:
        return failed("an owner waited too long for what it had lent", f"{took:.0f} s", f"{play.back_s:g} s")
    left = play.most("settle", "guest")
    if left:
        return failed("a job that lost part of its devices kept the rest", f"{left} of {play.size('guest')} pods")
    if (half := play.partial_s("guest", "take back", "settle")) > LEAVING_S:
        return failed(f"a job ran for {half:.0f} s with part of its devices", expected=f"{LEAVING_S:g} s")
    if play.missed("return"):
        return failed("a job that gave devices back did not start again when they were free", play.why("return"))
    again = play.took("return")
    return passed(
        message=f"the owner ran after {took:.0f} s, no pod of the guest was left; it ran again after {again:.0f} s"
    )


def _priority(play: Play) -> Result:
    samples, size = play.recording.during("both"), play.size("high")
    if play.missed("both"):
        return failed("two jobs that waited did not both run", play.why("both"))
    first = next((one for one in samples if one.of("high").held + one.of("high").ended >= size), None)
    if first is None:
        return unknown("the more important job was too quick to be seen")
    low = first.of("low")
    if low.done or low.ended:
        return failed("a less important job ran before one that came later and is more important")
    return _kept("the more important job ran first, though it had come later")


def _oversize(play: Play) -> Result:
    held = play.most("wait", "large") + play.most("pass", "large")
    if held:
        return failed("a job that the machines have no room for held devices", f"{held} of {play.size('large')} pods")
    if play.missed("pass"):
        return failed("a job that fits did not start behind one that fits no machine", play.why("pass"))
    return _kept("it waited without a device, and a smaller job passed it")


def _requeue(play: Play) -> Result:
    held = play.most("half", "half")
    if play.missed("requeue"):
        return failed("half of a job kept its devices", f"{held} of {play.size('half')} pods", play.why("requeue"))
    return passed(
        message=f"{held} of {play.size('half')} pods had started; all were gone {play.took('requeue'):.0f} s later"
    )


def _restart(play: Play) -> Result:
    if play.missed("lose"):
        return failed("a job that lost a pod did not become whole again", play.why("lose"))
    return _kept(f"all {play.size('gang')} pods ran {play.took('lose'):.0f} s after one was lost")


def _down(play: Play) -> Result:
    if play.missed("start"):
        return failed("while the scheduler of jobs is stopped, no other pod starts", play.why("start"))
    return _kept(f"a pod that is no job's ran after {play.took('start'):.0f} s")


RULES: Mapping[str, Callable[[Play], Result]] = {
    "scheduler-gang": _gang,
    "scheduler-deadlock": _deadlock,
    "scheduler-quota": _quota,
    "scheduler-borrow": _borrow,
    "scheduler-reclaim": _reclaim,
    "scheduler-priority": _priority,
    "scheduler-oversize": _oversize,
    "scheduler-requeue": _requeue,
    "scheduler-cores": _quota,
    "scheduler-restart": _restart,
    "scheduler-down": _down,
}


def judged(play: Play) -> tuple[Finding, ...]:
    """The findings of one scenario."""
    return tuple(_finding(PROMISES[check], _result(PROMISES[check], play), play) for check in play.scenario.checks)


def _result(promise: Promise, play: Play) -> Result:
    recording = play.recording
    if recording.refused:
        return unknown("the API did not take the objects of the test", recording.refused, remedy=promise.remedy)
    if recording.missed in promise.prepares:
        return unknown("no job came as far as to try it", play.why(recording.missed), remedy=PROMISES[START].remedy)
    if any(mark.name not in promise.prepares and not recording.during(mark.name) for mark in recording.marks):
        return unknown("the cluster was not seen while it was tried")
    if not {mark.name for mark in recording.marks} - set(promise.prepares):
        return unknown("the test ended before it was tried", remedy="run it again")
    result = RULES[promise.id](play)
    shown = play.recording.mark(promise.shown_by or play.scenario.scenes[-1].name)
    if result.verdict is Verdict.PASS and (shown is None or shown.met_s is None):
        return unknown("the test ended before it was seen to the end", remedy="run it again")
    return result


def _finding(promise: Promise, result: Result, play: Play) -> Finding:
    sick = result.verdict is Verdict.FAIL
    samples = play.recording.samples
    seconds = samples[-1].at_s - samples[0].at_s if samples else 0.0
    return Finding(
        promise.id,
        result.verdict,
        SUBJECT,
        f"{promise.meaning}: {result.message}" if sick else f"{promise.title}: {result.message}",
        result.value[:400],
        result.expected,
        result.remedy or (promise.remedy if sick else ""),
        action=Action.CONFIG if sick else Action.NONE,
        evidence=f"{len(samples)} looks in {seconds:.0f} s at namespace {play.scenario.namespace}",
    )


def started(plays: Sequence[Play]) -> Finding:
    """The finding on what all scenarios begin with: whether any job starts."""
    promise, evidence = PROMISES[START], f"the first jobs of {len(plays)} namespaces"
    stuck = [play for play in plays if _stuck(play)]
    if stuck:
        told = (f"{play.scenario.name}: {play.recording.refused or play.why(play.recording.missed)}" for play in stuck)
        message = f"{promise.meaning}: {len(stuck)} of {len(plays)} that should have did not"
        value = "; ".join(told)[:400]
        return Finding(
            START, Verdict.FAIL, SUBJECT, message, value, "", promise.remedy, "", Action.CONFIG, "", evidence
        )
    return Finding(
        START, Verdict.PASS, SUBJECT, f"{promise.title}: {len(plays)} of {len(plays)} did", evidence=evidence
    )


def _stuck(play: Play) -> bool:
    """Whether not even the jobs that only make room came, or the API did not take them."""
    missed = play.recording.missed
    return bool(play.recording.refused) or all(missed in PROMISES[check].prepares for check in play.scenario.checks)


def untried(check: str, reason: str) -> Finding:
    """The finding on a promise that this scheduler does not make, or that was not tried for a reason."""
    promise = PROMISES[check]
    return Finding(check, Verdict.SKIP, SUBJECT, f"{promise.title}: {reason}")
