"""How jobs stand, from objects as the API gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.jobs.model import Job
from pai_install.jobs.state import JobState, states_of
from pai_install.json_schema import schema_of
from pai_install.report.job_models import JobReport, JobsReport
from pai_install.report.jobs import job_report, job_text, jobs_report, jobs_text
from pai_install.schedulers.jobs import objects_of
from pai_install.scheduling.model import Backend
from tests.unit.jobs.examples import role, servers_and_workers, somewhere

Object = dict[str, Any]


def job(backend: Backend = "kueue", of: Job | None = None, **status: Any) -> Object:
    """The job's own object as the cluster has it."""
    made = dict(objects_of(of or servers_and_workers(), somewhere(backend))[0])
    return {**made, "metadata": {**made["metadata"], "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": status}


def holds(kind: str, message: str = "", status: str = "True") -> Object:
    return {"type": kind, "status": status, "reason": "Because", "message": message}


def pod(role_label: str, index: int, phase: str = "Running", node: str = "g1", **more: Any) -> Object:
    """more: state, of its container; conditions; made: when."""
    state = more.get("state", {"running": {}} if phase == "Running" else {})
    labels = {
        "pai-install/user": "alice",
        "jobset.sigs.k8s.io/jobset-name": "ps-job",
        "jobset.sigs.k8s.io/replicatedjob-name": role_label,
        "batch.kubernetes.io/job-completion-index": str(index),
        "volcano.sh/job-name": "ps-job",
        "volcano.sh/task-spec": role_label,
        "volcano.sh/task-index": str(index),
    }
    made = more.get("made", "2026-01-01T00:00:01Z")
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"{role_label}-{index}-{made[-3:-1]}",
            "namespace": "vision",
            "labels": labels,
            "creationTimestamp": made,
            "ownerReferences": [{"kind": "Job", "name": "ps-job", "controller": True}],
        },
        "spec": {"nodeName": node} if node else {},
        "status": {
            "phase": phase,
            "conditions": more.get("conditions", []),
            "containerStatuses": [{"name": "main", "state": state}],
        },
    }


def workload(*conditions: Object, name: str = "ps-job") -> Object:
    owner = {"kind": "JobSet", "name": name, "controller": True}
    metadata = {"name": f"jobset-{name}-1", "namespace": "vision", "ownerReferences": [owner]}
    return {"kind": "Workload", "metadata": metadata, "status": {"conditions": list(conditions)}}


def stands(own: Object, *pods: Object, said: tuple[Object, ...] = ()) -> JobState:
    (found,) = states_of([own], pods, said)
    return found


def ended(code: int, reason: str = "") -> Object:
    return {"terminated": {"exitCode": code, "reason": reason or ("Error" if code else "Completed")}}


WHOLE = [pod("ps-server", 0), pod("ps-server", 1, node="g2"), pod("worker-v2", 0), pod("worker-v2", 1, node="g2")]


def test_a_job_that_waits_says_why_in_the_schedulers_words(snapshot: SnapshotAssertion) -> None:
    message = "couldn't assign flavors to pod set worker-v2: insufficient unused quota for nvidia.com/gpu"
    other = workload(holds("QuotaReserved", "of another job", "False"), name="other")
    found = stands(job(), said=(other, workload(holds("QuotaReserved", message, "False"))))
    assert (found.state, found.why) == ("WAITING", f"waits for quota: {message}")
    assert job_text(found) == snapshot


def test_a_job_that_was_taken_back_says_so_and_waits(snapshot: SnapshotAssertion) -> None:
    said = workload(holds("Evicted", "Preempted to accommodate another"), holds("QuotaReserved", "no quota", "False"))
    found = stands(job(), said=(said,))
    assert found.why == snapshot
    again = workload(holds("Evicted", "Preempted"), holds("QuotaReserved", "Quota reserved"))
    assert stands(job(), *WHOLE, said=(again,)).why == ""


def test_a_job_runs_once_all_of_it_does() -> None:
    assert stands(job(), *WHOLE).state == "RUNNING"
    assert stands(job(), *WHOLE[:3]).state == "STARTING"
    unplaced = pod("worker-v2", 1, "Pending", "", conditions=[holds("PodScheduled", "0/2 nodes", "False")])
    found = stands(job(), *WHOLE[:3], unplaced)
    assert (found.state, found.why) == ("STARTING", "0/2 nodes")
    pulling = pod("worker-v2", 1, "Pending", state={"waiting": {"reason": "ErrImagePull", "message": "not found"}})
    assert stands(job(), *WHOLE[:3], pulling).why == "ErrImagePull not found"


def test_where_each_pod_is_and_how_it_ended(snapshot: SnapshotAssertion) -> None:
    found = stands(
        job(conditions=[holds("Completed")], restarts=1),
        pod("worker-v2", 0, "Succeeded", state=ended(0)),
        pod("worker-v2", 1, "Failed", "g2", state=ended(137, "OOMKilled")),
    )
    assert (found.state, found.retries) == ("SUCCEEDED", 1)
    text = job_text(found)
    assert text.startswith(
        "ps.job: SUCCEEDED, 1 retry\n  of alice, group vision (namespace vision, JobSet ps-job there)\n"
    )
    assert text == snapshot


def test_of_pods_with_one_number_the_newest_counts() -> None:
    old = pod("worker-v2", 0, "Failed", state=ended(1), made="2026-01-01T00:00:00Z")
    found = stands(job(), old, *WHOLE)
    assert [one.state for one in found.instances] == ["RUNNING"] * 4


def in_turns(*pods: Object, parts: int = 4, **status: Any) -> JobState:
    """A batch Job of that many parts, two at a time, with a GPU each."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    own = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "prepare", "namespace": "vision", "labels": {"pai-install/user": "alice"}},
        "spec": {"parallelism": 2, "completions": parts, "template": {"spec": {"containers": [container]}}},
        "status": status,
    }
    for one in pods:
        one["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "prepare"
    return stands(own, *pods)


def test_a_job_in_turns_runs_while_as_many_do_as_may_and_says_what_is_to_come(snapshot: SnapshotAssertion) -> None:
    through = [pod("", number, "Succeeded", state=ended(0)) for number in range(2)]
    found = in_turns(*through, pod("", 2), pod("", 3))
    assert found.state == "RUNNING"
    assert "no pod" not in job_text(found)
    assert jobs_text([found]).splitlines()[1].split()[-3:] == ["RUNNING", "4/4", "2"], "two hold a GPU"
    assert len(found.holders) == 2
    early = in_turns(pod("", 0), pod("", 1))
    assert early.state == "RUNNING"
    assert job_text(early) == snapshot
    assert in_turns(*through, pod("", 2)).state == "STARTING"
    assert in_turns(*through, pod("", 2), parts=3).state == "RUNNING", "no other is to come"


def test_a_job_without_numbers_may_have_more_pods_than_it_wants() -> None:
    """Of one that failed and was tried again both are there."""
    failed = pod("", 0, "Failed", state=ended(1), made="2026-01-01T00:00:00Z")
    failed, again = (unnumbered(one) for one in (failed, pod("", 0, made="2026-01-01T00:01:00Z")))
    found = in_turns(failed, again, parts=1)
    assert found.state == "RUNNING"
    assert [line.split()[:3] for line in job_text(found).splitlines()[-2:]] == [
        ["job", "0", "FAILED"],
        ["job", "1", "RUNNING"],
    ]


def unnumbered(one: Object) -> Object:
    labels = one["metadata"]["labels"]
    del labels["batch.kubernetes.io/job-completion-index"]
    return one


def test_pods_that_another_user_calls_the_jobs_are_none_of_it() -> None:
    anothers = pod("worker-v2", 0, made="2026-01-01T00:00:09Z")
    anothers["metadata"]["labels"]["pai-install/user"] = "mallory"
    assert stands(job(), *WHOLE, anothers) == stands(job(), *WHOLE)


def test_a_job_that_failed_says_why(snapshot: SnapshotAssertion) -> None:
    found = stands(job(conditions=[holds("Failed", "jobset failed due to one or more job failures")]))
    assert (found.state, found.why) == snapshot


def test_a_pod_whose_machine_is_silent_says_so_and_then_that_it_is_taken_away(snapshot: SnapshotAssertion) -> None:
    """What the API had of a pod whose machine was switched off: after 40 seconds, and after five minutes."""
    silent = pod("worker-v2", 1, node="g2", conditions=[{"type": "Ready", "status": "False"}])
    silent["status"]["containerStatuses"][0]["ready"] = True
    found = stands(job(), *WHOLE[:3], silent)
    assert (found.state, found.why) == snapshot
    silent["metadata"]["deletionTimestamp"] = "2026-01-01T00:06:00Z"
    taint = "Taint manager: deleting due to NoExecute taint"
    silent["status"]["conditions"].append(holds("DisruptionTarget", taint))
    found = stands(job(), *WHOLE[:3], silent)
    assert (found.state, found.why) == ("STARTING", f"taken off g2: {taint}")
    assert [one.state for one in found.instances] == ["RUNNING", "RUNNING", "RUNNING", "STOPPING"]
    unready = "Exceeded the PodsReady timeout"
    said = workload(holds("Evicted", unready), holds("QuotaReserved", "no quota", "False"))
    found = stands(job(), silent, said=(said,))
    assert found.why == snapshot


def test_one_that_is_being_stopped() -> None:
    own = job()
    own["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:00Z"
    assert stands(own, *WHOLE).state == "STOPPING"


def test_volcano(snapshot: SnapshotAssertion) -> None:
    plain = Job("ps.job", (role("ps_server", 2), role("worker-v2", 2, 4, min_succeeded=2)))

    def at(phase: str, *pods: Object, said: tuple[Object, ...] = ()) -> JobState:
        status = {"state": {"phase": phase, "message": "a pod failed"}, "retryCount": 2}
        return stands(job("volcano", plain, **status), *pods, said=said)

    owner = [{"kind": "Job", "name": "ps-job"}]
    waits = {
        "kind": "PodGroup",
        "metadata": {"name": "ps-job-1", "namespace": "vision", "ownerReferences": owner},
        "status": {"conditions": [holds("Unschedulable", "4/4 tasks in gang unschedulable")]},
    }
    found = at("Pending", said=(waits,))
    assert (found.state, found.why) == snapshot
    assert at("Running", *WHOLE, said=(waits,)).why == ""
    assert at("Running", *WHOLE).state == "RUNNING"
    assert at("Completed").state == "SUCCEEDED"
    assert (at("Terminated").state, at("Terminated").why, at("Terminated").retries) == ("FAILED", "a pod failed", 2)


def test_what_is_printed_is_what_is_published() -> None:
    waiting = stands(job(), said=(workload(holds("QuotaReserved", "no quota", "False")),))
    running = stands(job(), *WHOLE)
    jsonschema.validate(job_report(running).as_json(), schema_of(JobReport))
    jsonschema.validate(jobs_report([waiting, running]).as_json(), schema_of(JobsReport))
    lines = jobs_text([waiting, running]).splitlines()
    assert lines[1].split() == [
        *("ps.job", "vision", "alice", "research", "prod", "WAITING", "0/4", "8"),
        *("waits", "for", "quota:", "no", "quota"),
    ]
    assert lines[2].split()[-3:] == ["RUNNING", "4/4", "8"]
    assert jobs_text([]) == "no jobs\n"


@pytest.mark.parametrize(("state", "gone"), [("SUCCEEDED", ""), ("FAILED", ""), ("STOPPED", ""), ("RUNNING", "2026")])
def test_an_ended_job_holds_no_gpus_and_misses_no_pods(state: Any, gone: str) -> None:
    whole = stands(job(), *WHOLE)
    left = tuple(replace(role, instances=role.instances[:1]) for role in whole.roles)
    lines = jobs_text([replace(whole, state=state, gone=gone, roles=left)]).splitlines()
    assert lines[1].split()[-3:] == [state, "4", "0"]


def test_what_somebody_else_wrote_there_is_no_reason_to_fail() -> None:
    own = job(conditions="broken")
    own["metadata"]["annotations"]["pai-install/roles"] = "{"
    assert [one.name for one in stands(own, *WHOLE).roles] == ["ps-server", "worker-v2"]
    own["metadata"]["annotations"]["pai-install/roles"] = '{"ps-server": 3}'
    assert stands(own).roles[0].wanted == 2
    own["spec"] = {"replicatedJobs": "broken"}
    assert stands(own).roles == ()


@pytest.mark.parametrize(("status", "at"), [("True", "2026-01-01T01:00:00Z"), ("False", "")])
def test_kueues_preemption_is_history_also_while_the_job_runs_again(status: str, at: str) -> None:
    taken = {
        **holds("Preempted", "Previously: for a job of its owner", status),
        "lastTransitionTime": "2026-01-01T01:00:00Z",
    }
    found = stands(job(), *WHOLE, said=(workload(taken),))
    assert [(one.at, one.why) for one in found.preemptions] == [(at, "for a job of its owner")]


def test_a_job_whose_pods_a_quota_refuses_says_so() -> None:
    """The controller of Jobs tells it of the Job, which is a part of the JobSet and has no label of its user."""
    message = "exceeded quota: pai-unqueued, requested: requests.cpu=2, used: requests.cpu=8, limited: requests.cpu=8"
    event = warning("part-1", "2026-01-01T00:00:09Z", message)
    about = {"kind": "Job", "namespace": "vision", "name": "ps-job-worker-v2-0", "uid": "part-1"}
    (found,) = states_of([job("default")], [], [], [{**event, "involvedObject": about}])
    assert (found.state, found.why) == ("WAITING", f"PluginError: {message}")
    others = [{**about, "namespace": "speech"}, {**about, "name": "ps-job-worker-v2-1"}, {**about, "kind": "Pod"}]
    (left,) = states_of([job("default")], [], [], [{**event, "involvedObject": one} for one in others])
    assert left.why == ""


def warning(uid: str, at: str, message: str, kind: str = "Warning") -> Object:
    event = {"kind": "Event", "type": kind, "reason": "PluginError", "message": message, "lastTimestamp": at}
    return {**event, "involvedObject": {"uid": uid}}


@pytest.mark.parametrize("whose", ["job-1", "owner-1"])
def test_job_without_another_reason_has_the_newest_warning_of_its_object_and_owners(whose: str) -> None:
    own = job("volcano")
    own["metadata"] |= {"uid": "job-1", "ownerReferences": [{"kind": "CronJob", "name": "nightly", "uid": "owner-1"}]}
    events = [
        warning(whose, "2026-01-01T00:00:09Z", "no right\n to \x1b[31m Secrets " + "x" * 500),
        warning("job-1", "2026-01-01T00:00:08Z", "an older one"),
        warning("job-1", "2026-01-01T00:00:10Z", "no warning", "Normal"),
        warning("job-2", "2026-01-01T00:00:11Z", "of another job"),
    ]
    (found,) = states_of([own], [], [], events)
    assert found.why.startswith("PluginError: no right to ?[31m Secrets")
    assert len(found.why) == 400
    (running,) = states_of([own], WHOLE, [], events)
    assert (running.state, running.why) == ("RUNNING", "")
    (waiting,) = states_of(
        [own], [pod("ps-server", 0, "Pending", "", conditions=[holds("PodScheduled", "full", "False")])], [], events
    )
    assert waiting.why == "full"


def test_pod_that_its_machine_does_not_start_has_the_warning_of_its_kubelet() -> None:
    """A folder of a storage is missing on the machine: the pod itself says only ContainerCreating."""
    unready = [holds(name, "containers with unready status: [main]", "False") for name in ("Ready", "ContainersReady")]
    starting = pod("ps-server", 0, "Pending", "w1", conditions=unready)
    starting["metadata"]["uid"] = "pod-1"
    starting["status"]["containerStatuses"] = [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    missing = warning("pod-1", "2026-01-01T00:00:09Z", 'path "/data" does not exist')
    (found,) = states_of([job("volcano")], [starting], [], [missing])
    assert found.why == found.roles[0].instances[0].why == 'PluginError: path "/data" does not exist'
    unplaced = {**missing, "reason": "FailedScheduling"}
    assert states_of([job("volcano")], [starting], [], [unplaced])[0].why == "", "it has a machine now"
