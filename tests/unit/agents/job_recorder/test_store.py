"""What is recorded when: told as the API server tells, asked as the program asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from pai_install.agents.common.records import Preemption, Record, Removed, read_record, state_map
from pai_install.agents.job_recorder.orders import Drop, End, Read, WriteLogs, WriteState
from pai_install.agents.job_recorder.store import (
    AT_ONCE,
    ATTEMPTS,
    READ_LAST_S,
    READ_S,
    SETTLE_S,
    WRITE_LOGS_S,
    WRITE_S,
    Rules,
    Store,
    tail,
)
from tests.unit.agents.job_recorder.objects import Object, complete, job, pod

RULES = Rules(7, 3, 100, frozenset({"vision"}), frozenset({"batch/jobs", "pods"}))
DAY_S = 86400


def listed(clock: Clock, resource: str, items: Collection[Object]) -> None:
    """All objects of a kind, as the recorder takes them."""
    for item in items:
        (clock.memory.see_pod if resource == "pods" else clock.memory.see_job)(item, clock.now)
    clock.memory.retain(resource, {item["metadata"]["uid"] for item in items}, clock.now)


class Clock:
    """A recorder, and the time it is told."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.memory, self.now = Store(rules), 1000.0
        self.states: list[Record] = []
        self.logs: list[WriteLogs] = []
        self.reads: list[Read] = []
        self.drops: list[str] = []
        self.ends: list[str] = []

    def later(self, seconds: float, **lines: str | None) -> None:
        """Does what is due at once, and again after the time. lines: what each pod's log has, with "_" for "-"."""
        for wait in (0.0, seconds):
            self.now += wait
            self.due({name.replace("_", "-"): text for name, text in lines.items()})

    def due(self, lines: dict[str, str | None]) -> None:
        for action in self.memory.due(self.now):
            if isinstance(action, WriteState):
                self.states.append(action.record)
            elif isinstance(action, WriteLogs):
                self.logs.append(action)
            elif isinstance(action, Drop):
                self.drops.append(action.record.uid)
            elif isinstance(action, End):
                self.ends.append(action.job["metadata"]["uid"])
            else:
                self.reads.append(action)
                self.memory.log_read(action, lines.get(action.pod), self.now)

    def see(self, *objects: Object) -> None:
        for item in objects:
            (self.memory.see_pod if item["kind"] == "Pod" else self.memory.see_job)(item, self.now)

    def gone(self, *objects: Object) -> None:
        for item in objects:
            (self.memory.pod_gone if item["kind"] == "Pod" else self.memory.job_gone)(item, self.now)

    @property
    def last(self) -> Record:
        return self.states[-1]


def machines(record: Record) -> dict[str, str]:
    return {place: pod["spec"]["nodeName"] for place, pod in record.pods.items()}


def went(record: Record) -> bool:
    return record.removed is not None


def codes(record: Record) -> list[Any]:
    states = [pod["status"]["containerStatuses"][0]["state"] for pod in record.pods.values()]
    return [state.get("terminated", {}).get("exitCode") for state in states]


def test_a_job_that_ends_and_goes_leaves_how_it_ended_and_its_last_lines() -> None:
    clock = Clock()
    clock.see(job(), pod(0), pod(1))
    clock.later(WRITE_S, train_0_0="begun", train_1_1="begun")
    assert not went(clock.last)
    clock.see(pod(0, phase="Succeeded", code=0), pod(1, phase="Failed", code=3), job(status=complete()))
    clock.later(READ_LAST_S, train_0_0="done", train_1_1="out of memory")
    clock.gone(pod(0, phase="Succeeded", code=0), pod(1, phase="Failed", code=3), job(status=complete()))
    clock.later(WRITE_S)
    assert machines(clock.last) == {"/0": "g1", "/1": "g1"}
    assert codes(clock.last) == [0, 3]
    assert clock.last.removed is not None
    assert clock.logs[-1].logs == {"train-0-0": "done", "train-1-1": "out of memory"}
    before = len(clock.states), len(clock.logs), len(clock.reads)
    clock.later(DAY_S)
    assert (len(clock.states), len(clock.logs), len(clock.reads)) == before, "nothing more is done for it"


def test_who_stopped_it_and_why() -> None:
    clock = Clock()
    clock.see(job())
    clock.see(job(notes={"pai-install/stopped-by": "root", "pai-install/stopped-why": "the machine is needed"}))
    clock.gone(job(notes={"pai-install/stopped-by": "root", "pai-install/stopped-why": "the machine is needed"}))
    clock.later(WRITE_S)
    assert clock.last.removed == Removed(1000.0, "root", "the machine is needed")


def test_last_words_come_before_a_pod_is_gone_and_after_its_job_is() -> None:
    clock = Clock()
    clock.see(job(), pod(0))
    clock.gone(job())
    clock.see(pod(0, going=True))
    clock.later(READ_LAST_S, train_0_0="saving")
    clock.see(pod(0, going=True, phase="Failed", code=143))
    clock.later(READ_LAST_S, train_0_0="saving\nsaved")
    clock.gone(pod(0, going=True, phase="Failed", code=143))
    clock.later(WRITE_S)
    assert clock.logs[-1].logs == {"train-0-0": "saving\nsaved"}
    assert codes(clock.last) == [143]


def test_who_reads_that_it_is_gone_reads_its_last_lines() -> None:
    """Also where the lines of another pod, which ended before, were written a moment ago."""
    clock = Clock()
    clock.see(job(), pod(0), pod(1))
    clock.later(WRITE_S, train_0_0="begun", train_1_1="begun")
    clock.later(WRITE_S - 1)
    clock.see(pod(1, phase="Succeeded", code=0))
    clock.later(1, train_0_0="begun", train_1_1="done")
    ended = pod(0, phase="Succeeded", code=0, going=True)
    clock.see(ended, job(status=complete()))
    clock.later(READ_LAST_S, train_0_0="begun\ndone")
    clock.gone(job(status=complete()))
    while not went(clock.last):
        clock.later(1)
    assert clock.logs[-1].logs == {"train-0-0": "begun\ndone", "train-1-1": "done"}


def test_a_machine_that_does_not_answer_is_asked_some_times() -> None:
    clock = Clock()
    clock.see(job(), pod(0, phase="Failed", code=1))
    for _ in range(20):
        clock.later(READ_LAST_S)
    assert len(clock.reads) == ATTEMPTS
    clock.gone(job())
    clock.later(SETTLE_S + 1)
    assert clock.last.removed is not None, "a pod that never goes keeps no record open"


def test_a_machine_that_keeps_a_pod_and_does_not_answer_is_not_asked_all_the_time() -> None:
    clock = Clock()
    clock.see(job(), pod(0, going=True))
    for _ in range(int(READ_S * 3 / READ_LAST_S)):
        clock.later(READ_LAST_S)
    assert ATTEMPTS < len(clock.reads) <= ATTEMPTS + 3
    clock.see(pod(0, going=True, phase="Failed", code=137))
    clock.later(READ_LAST_S, train_0_0="the end")
    clock.later(WRITE_S)
    assert clock.logs[-1].logs == {"train-0-0": "the end"}


def test_of_a_job_that_goes_on_little_is_read_and_written() -> None:
    clock = Clock()
    clock.see(job(), pod(0))
    for second in range(1200):
        clock.later(1, train_0_0=f"step {second}")
        clock.see(job(), pod(0))
    assert len(clock.states) == 1
    assert len(clock.reads) <= 1200 / READ_S + 1
    assert len(clock.logs) <= 1200 / WRITE_LOGS_S + 1


def test_few_logs_are_read_at_once_and_those_that_go_first() -> None:
    memory = Store(RULES)
    memory.see_job(job(), 0)
    for index in range(AT_ONCE * 3):
        memory.see_pod(pod(index), 0)
    memory.see_pod(pod(99, going=True), 0)
    reads = [action for action in memory.due(100) if isinstance(action, Read)]
    assert len(reads) == AT_ONCE
    assert reads[0].pod == "train-99-99"
    assert not [action for action in memory.due(100) if isinstance(action, Read)]
    memory.log_read(reads[0], "", 100)
    assert len([action for action in memory.due(100) if isinstance(action, Read)]) == 1


def test_of_a_place_the_last_pod_counts() -> None:
    clock = Clock()
    clock.see(job(), pod(0, "first", phase="Failed", code=1))
    clock.later(WRITE_S, train_0_first="no memory")
    clock.see(pod(0, "second", made=5))
    clock.see(pod(0, "first", phase="Failed", code=1, going=True))
    clock.later(WRITE_S, train_0_second="better")
    clock.gone(job())
    clock.later(SETTLE_S + 1)
    assert codes(clock.last) == [None]
    assert clock.logs[-1].logs == {"train-0-second": "better"}


def test_a_name_that_is_used_again_is_another_job() -> None:
    clock = Clock()
    clock.see(job(uid="one"), pod(0, "a"))
    clock.later(WRITE_S, train_0_a="of one")
    clock.gone(pod(0, "a"))
    # the end of the first was not told
    clock.see(job(uid="two", made=30), pod(0, "b", made=31))
    clock.later(WRITE_S, train_0_b="of two")
    clock.gone(job(uid="two", made=30), pod(0, "b", made=31))
    clock.later(WRITE_S)
    found = {record.uid: record for record in clock.states}
    assert {uid: bool(record.removed) for uid, record in found.items()} == {"one": True, "two": True}
    assert [pod["metadata"]["uid"] for uid in ("one", "two") for pod in found[uid].pods.values()] == ["a", "b"]
    assert {written.job["metadata"]["uid"]: list(written.logs) for written in clock.logs} == {
        "one": ["train-0-a"],
        "two": ["train-0-b"],
    }


def test_pods_of_another_user_are_none_of_it() -> None:
    clock = Clock()
    clock.see(job(), pod(0), pod(1, "forged", user="bob"), pod(1, "bare", alone=True))
    clock.later(WRITE_S, train_1_forged="alice's job mines coins", train_1_bare="the same")
    (own,) = [record for record in clock.states if record.uid == "job-1"]
    assert list(own.pods) == ["/0"]
    assert [written.logs for written in clock.logs if written.job["metadata"]["uid"] == "job-1"] == []


def test_what_is_in_no_group_is_not_ours() -> None:
    clock = Clock()
    clock.see(job(space="kube-system"), job(user=""))
    clock.gone(job(space="kube-system"))
    clock.later(WRITE_S)
    assert not clock.states


def test_a_pod_that_nothing_made_is_a_job() -> None:
    clock = Clock()
    clock.see(pod(0, alone=True))
    clock.see(pod(0, alone=True, phase="Succeeded", code=0))
    clock.later(READ_LAST_S, train_0_0="hello")
    clock.gone(pod(0, alone=True, phase="Succeeded", code=0))
    clock.later(WRITE_S)
    assert (clock.last.job["kind"], clock.last.job["metadata"]["name"]) == ("Pod", "train-0-0")
    assert clock.last.removed is not None
    assert clock.logs[-1].logs == {"train-0-0": "hello"}


def test_what_was_missed_is_seen_in_the_next_list() -> None:
    clock = Clock()
    clock.see(job("stays", "stays"), job(), pod(0))
    clock.later(WRITE_S, train_0_0="begun")
    listed(clock, "kubeflow.org/tfjobs", ())
    listed(clock, "batch/jobs", [job("stays", "stays")])
    listed(clock, "pods", ())
    clock.later(WRITE_S)
    gone = {record.uid: record.removed is not None for record in clock.states}
    assert gone == {"stays": False, "job-1": True}


def test_a_kind_that_the_api_server_knows_again_has_its_jobs_again() -> None:
    clock = Clock()
    clock.see(job())
    listed(clock, "batch/jobs", ())
    listed(clock, "batch/jobs", [job()])
    clock.later(WRITE_S)
    assert clock.last.removed is None


def recalled(records: Iterable[Record], logs: dict[str, str], rules: Rules = RULES) -> Clock:
    clock = Clock(rules)
    for record in records:
        clock.memory.recall(record, logs, clock.now)
    return clock


def test_one_that_is_started_again_goes_on_where_it_was() -> None:
    first = Clock()
    first.see(job(), pod(0, phase="Succeeded", code=0), pod(1))
    first.later(WRITE_S, train_0_0="done", train_1_1="begun")
    again = recalled([first.last], {"train-0-0": "done", "train-1-1": "begun"})
    listed(again, "batch/jobs", [job()])
    listed(again, "pods", [pod(0, phase="Succeeded", code=0), pod(1)])
    again.later(1, train_1_1="begun")
    assert [read.pod for read in again.reads] == ["train-1-1"], "what had ended is not read again"
    assert not again.states
    again.gone(pod(1), pod(0, phase="Succeeded", code=0), job())
    again.later(WRITE_LOGS_S)
    assert machines(again.last) == {"/0": "g1", "/1": "g1"}
    assert again.last.removed is not None


def test_one_that_missed_the_end_says_that_it_is_gone() -> None:
    first = Clock()
    first.see(job(), pod(0))
    first.later(WRITE_S, train_0_0="begun")
    again = recalled([first.last], {"train-0-0": "begun"})
    listed(again, "batch/jobs", ())
    listed(again, "pods", ())
    again.later(WRITE_S)
    assert again.last.removed is not None
    assert machines(again.last) == {"/0": "g1"}
    other = recalled([first.last], {}, replace(RULES, kinds=frozenset({"batch.volcano.sh/jobs"})))
    other.later(WRITE_S)
    assert other.last.removed is not None, "the site has no such jobs any more"


def test_a_record_that_could_not_be_written_is_written_later() -> None:
    memory = Store(RULES)
    memory.see_job(job(), 0)
    (first,) = memory.due(WRITE_S)
    assert isinstance(first, WriteState)
    memory.not_written(first, WRITE_S)
    assert memory.due(WRITE_S + 1) == []
    assert memory.due(2 * WRITE_S) == [first]
    memory.job_gone(job(), 2 * WRITE_S)
    (last,) = memory.due(3 * WRITE_S)
    assert isinstance(last, WriteState)
    memory.not_written(last, 3 * WRITE_S)
    assert memory.due(4 * WRITE_S) == [last], "also the last"
    assert memory.due(400 * WRITE_S) == []


def test_records_go_when_they_are_old_or_too_many() -> None:
    clock = recalled((Record(job(uid=f"job-{age}"), {}, Removed(1000 - age * DAY_S)) for age in (1, 2, 3, 4, 8)), {})
    clock.later(0)
    assert sorted(clock.drops) == ["job-4", "job-8"], "three per group, of seven days"
    clock.later(5 * DAY_S)
    assert sorted(clock.drops) == ["job-3", "job-4", "job-8"]
    clock.later(30 * DAY_S)
    assert len(clock.drops) == 5


def test_the_last_lines_of_many_pods_fit() -> None:
    rules = replace(RULES, log_bytes=16 * 1024)
    memory = Store(rules)
    memory.see_job(job(), 0)
    for index in range(500):
        memory.see_pod(pod(index, phase="Failed", code=1), 0)
    reading = [action for action in memory.due(100) if isinstance(action, Read)]
    while reading:
        for read in reading:
            memory.log_read(read, "x" * 16 * 1024, 100)
        reading = [action for action in memory.due(100) if isinstance(action, Read)]
    (written,) = [action for action in memory.due(400) if isinstance(action, WriteLogs)]
    assert len(written.logs) == 500
    assert sum(map(len, written.logs.values())) < 700 * 1024


def test_a_tail_begins_with_a_line() -> None:
    assert tail("one\ntwo\nthree\n", 11) == "two\nthree\n"
    assert tail("one", 10) == "one"
    assert tail("x" * 20, 10) == "x" * 10
    assert tail("é" * 20, 9) == "é" * 4


def lost(index: int, uid: str, at: str) -> Object:
    """A pod that gives its devices to another."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "for a job of another queue",
        "lastTransitionTime": at,
    }
    found = pod(index, uid)
    return {**found, "status": {**found["status"], "conditions": [condition]}}


def started(name: str, at: str) -> Object:
    """A pod of another job, on the same machine since then."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    found = pod(0, f"pod-{name}", job=name)
    return {**found, "status": {**found["status"], "conditions": [condition]}}


def test_preemptions_of_a_job_and_the_job_that_has_its_devices() -> None:
    clock = Clock()
    clock.memory.see_job(job(), clock.now)
    for name in ("before", "after"):
        clock.memory.see_job(job(name, f"job-{name}"), clock.now)
    clock.memory.see_pod(started("before", "2026-01-01T00:00:50Z"), clock.now)
    clock.memory.see_pod(lost(0, "pod-0", "2026-01-01T00:01:00Z"), clock.now)
    clock.memory.see_pod(lost(1, "pod-1", "2026-01-01T00:01:01Z"), clock.now)
    clock.memory.see_pod(started("before", "2026-01-01T00:00:50Z"), clock.now)
    clock.memory.see_pod(started("after", "2026-01-01T00:01:05Z"), clock.now)
    clock.memory.see_pod(lost(0, "pod-2", "2026-01-01T00:09:00Z"), clock.now)
    clock.later(WRITE_S)
    (record,) = [one for one in clock.states if one.uid == "job-1"]
    assert [(one.at[-6:], one.by) for one in record.preemptions] == [("01:00Z", "vision/after"), ("09:00Z", "")]
    assert read_record(state_map(record)) == record


def test_job_that_starts_again_and_loses_its_devices_within_a_minute_was_preempted_twice() -> None:
    clock = Clock()
    clock.see(job(), lost(0, "pod-0", "2026-01-01T00:00:20Z"), lost(1, "pod-1", "2026-01-01T00:00:21Z"))
    for index in (0, 1):
        again = lost(index, f"again-{index}", "2026-01-01T00:00:50Z")
        again["metadata"]["creationTimestamp"] = "2026-01-01T00:00:30Z"
        clock.see(again)
    clock.later(WRITE_S)
    assert [one.at[-4:] for one in clock.last.preemptions] == [":20Z", ":50Z"]


def preempted(at: str, by: str, status: str = "True") -> Object:
    """An object of Kueue's about the job `train`. at: seconds."""
    condition = {
        "type": "Preempted",
        "status": status,
        "message": f"Preempted to accommodate a workload (UID: none, JobUID: {by}) due to reclamation in the cohort",
        "lastTransitionTime": f"2026-01-01T00:00:{at}Z",
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1", "controller": True}
    metadata = {"name": "job-train", "namespace": "vision", "uid": "workload", "ownerReferences": [owner]}
    return {"kind": "Workload", "metadata": metadata, "status": {"conditions": [condition]}}


def test_each_preemption_by_kueue_is_recorded_with_the_job_that_has_the_devices() -> None:
    """Kueue itself keeps the last one alone, and suspends the job: no pod says anything."""
    clock = Clock()
    clock.see(job(), job("first", "a1"), job("second", "a2"))
    for at, by in (("10", "a1"), ("40", "a2")):
        for status in ("True", "True", "False"):
            clock.memory.see_workload(preempted(at, by, status))
    clock.later(WRITE_S)
    (record,) = [one for one in clock.states if one.uid == "job-1"]
    assert [(one.at[-3:], one.by) for one in record.preemptions] == [("10Z", "vision/first"), ("40Z", "vision/second")]


def test_preemption_by_an_unknown_job_is_completed_when_the_job_is_known() -> None:
    clock = Clock()
    clock.see(job())
    clock.memory.see_workload(preempted("10", "a1"))
    clock.see(job("first", "a1"))
    clock.memory.see_workload(preempted("10", "a1"))
    clock.memory.see_workload(preempted("10", "gone"))
    elsewhere = preempted("20", "a1")
    elsewhere["metadata"]["namespace"] = "nlp"
    clock.memory.see_workload(elsewhere)
    clock.later(WRITE_S)
    (record,) = [one for one in clock.states if one.uid == "job-1"]
    assert [(one.at[-3:], one.by) for one in record.preemptions] == [("10Z", "vision/first")]


def test_recorder_that_starts_again_keeps_preemptions() -> None:
    clock = Clock()
    kept = Record(job(), {}, None, (Preemption("2026-01-01T00:01:00Z", "for a job of another queue"),))
    clock.memory.recall(kept, {}, clock.now)
    clock.memory.see_job(job(), clock.now)
    clock.memory.see_pod(lost(0, "pod-0", "2026-01-01T00:01:00Z"), clock.now)
    clock.later(WRITE_S)
    assert clock.states[-1].preemptions == kept.preemptions


def attempt(of: Object, version: str) -> Object:
    """A pod of an attempt of Volcano's."""
    return {**of, "metadata": {**of["metadata"], "annotations": {"volcano.sh/job-version": version}}}


def limited(**status: Any) -> Object:
    """A job that may fail once."""
    return job(notes={"pai-install/retries": "1"}, status={"state": {"phase": "Running"}, **status})


def test_job_that_failed_more_often_than_it_may_is_ended_until_it_has_ended() -> None:
    clock = Clock()
    clock.see(limited())
    for version in ("0", "1"):
        for place in (0, 1):
            clock.see(attempt(pod(place, f"pod-{version}-{place}", phase="Failed", code=3), version))
        clock.later(WRITE_S)
        assert {*clock.ends} == (set() if version == "0" else {"job-1"})
    assert clock.last.failed == ("0", "1")
    assert read_record(state_map(clock.last)) == clock.last
    before = len(clock.ends)
    clock.later(WRITE_S)
    assert len(clock.ends) > before
    clock.see(limited(state={"phase": "Terminated"}))
    before = len(clock.ends)
    clock.later(WRITE_S)
    assert len(clock.ends) == before


def test_attempts_that_lost_their_devices_are_no_failures() -> None:
    """The rest of the gang is deleted, and fails because of it."""
    clock = Clock()
    clock.see(limited())
    for version in ("0", "1", "2"):
        clock.see(attempt(pod(0, f"a-{version}", phase="Failed", code=143), version))
        clock.see(attempt(lost(0, f"a-{version}", "2026-01-01T00:01:00Z"), version))
        clock.see(attempt(pod(1, f"b-{version}", phase="Failed", code=143, going=True), version))
    clock.later(WRITE_S)
    assert (clock.last.lost, clock.ends) == (("0", "1", "2"), [])


def refused(of: Object) -> Object:
    """The pod as the kubelet leaves it that does not admit it."""
    why = {
        "reason": "UnexpectedAdmissionError",
        "message": "Pod was rejected: Allocate failed",
        "containerStatuses": [],
    }
    return {**of, "status": {**of["status"], "phase": "Failed", **why}}


def test_attempts_that_a_machine_refused_are_no_failures() -> None:
    clock = Clock()
    clock.see(limited())
    for version in ("0", "1", "2"):
        clock.see(attempt(refused(pod(0, f"a-{version}")), version))
    clock.later(WRITE_S)
    assert (clock.last.failed, clock.last.lost, clock.ends) == ((), ("0", "1", "2"), [])


def test_failures_are_counted_on_by_a_recorder_that_starts_again() -> None:
    clock = Clock()
    clock.memory.recall(Record(limited(), failed=("0",)), {}, clock.now)
    clock.see(limited(), attempt(pod(0, "pod-1", phase="Failed", code=3), "1"))
    clock.later(WRITE_S)
    assert {*clock.ends} == {"job-1"}


def test_job_without_a_limit_is_never_ended() -> None:
    clock = Clock()
    clock.see(job(), *(attempt(pod(0, f"pod-{it}", phase="Failed", code=3), str(it)) for it in range(5)))
    clock.later(WRITE_S)
    assert clock.ends == []
