"""`pai-install job` from argv to exit code, before a cluster in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.agents.common.records import Record, Removed, logs_map, state_map
from pai_install.agents.job_recorder.objects import kept_job, kept_pod, pod_key
from pai_install.app.context import App
from pai_install.app.frontend import Event, JobChanged
from pai_install.app.job_manifest import JobManifest, JobSubmission
from pai_install.app.job_submission import create_jobs, exit_code_of, watch_job
from pai_install.cli.schema import SCHEMAS
from pai_install.cluster.client import ApiError, Impersonation, NoClusterError
from pai_install.documents.document import Document
from pai_install.errors import ExitCode
from pai_install.jobs.state import JobState
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.run.state import state_of
from pai_install.schedulers.jobs import objects_of
from pai_install.schedulers.last_applied import kept_object
from pai_install.scheduling.read import scheduling_of
from pai_install.site.load import load_site
from tests.errors import raises
from tests.unit.cli.stub_environment import World, run
from tests.unit.cli.test_vc import site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.jobs.examples import servers_and_workers, somewhere
from tests.unit.jobs.test_state import WHOLE, holds, job, pod, stands, workload
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import GROUPS

FILE = {
    "jobName": "mnist_024",
    "image": "example.com/train:1",
    "virtualCluster": "default",
    "taskRoles": [
        {
            "name": "worker",
            "taskNumber": 2,
            "cpuNumber": 2,
            "memoryMB": 1024,
            "gpuNumber": 1,
            "command": "python train.py --workers=$PAI_TASK_ROLE_worker_HOST_LIST",
        }
    ],
}


@pytest.fixture
def world(in_world: Any) -> World:
    made: World = in_world(World())
    return made


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(site(tmp_path, VALID + GROUPS))


def submit(folder: str, *words: str, **changes: Any) -> int:
    """Submits FILE with changes."""
    file = Path(folder) / "job.json"
    file.write_text(json.dumps({**FILE, **changes}))
    return run(["job", "submit", str(file), "--site", folder, "--user", "alice", *words])


def kinds(world: World) -> list[str]:
    return sorted(ref.kind for ref in world.api.objects)


def test_submit(folder: str, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert submit(folder, "--group", "nlp") == ExitCode.OK
    made = world.api.objects[Ref("jobset", "mnist-024", "nlp")]
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    assert made["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "test"
    shown = capsys.readouterr()
    assert shown.err == snapshot
    assert shown.out.startswith("mnist_024: WAITING\n  of alice, group nlp (namespace nlp, JobSet mnist-024 there)\n")


def test_a_person_of_a_directory_is_named_as_there(folder: str, world: World, capsys: Any) -> None:
    person = ("--user", "oidc:al_ice@example.org")
    assert submit(folder, "--group", "nlp", *person) == ExitCode.OK
    made = world.api.objects[Ref("jobset", "mnist-024", "nlp")]
    assert made["metadata"]["labels"]["pai-install/user"] == "oidc.al__ice_at_example.org"
    capsys.readouterr()
    assert run(["job", "list", "--site", folder, *person]) == ExitCode.OK
    assert "mnist_024" in capsys.readouterr().out
    assert run(["job", "list", "--site", folder, "--user", "oidc:alice@example.org"]) == ExitCode.OK
    assert capsys.readouterr().out == "no jobs\n"
    assert submit(folder, "--group", "nlp", "--user", "oidc:al ice") == ExitCode.USAGE


def test_submit_waits_until_the_quota_counts_a_new_kind(
    folder: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first minute after an installation: the lab's quickstart found it."""
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            world.api.rejects = None

    monkeypatch.setattr("pai_install.app.job_submission.time.sleep", sleep)
    details = "forbidden: status unknown for quota: pai-objects, resources: count/jobsets.jobset.x-k8s.io"
    world.api.rejects = ApiError("kubectl create failed", reason="Forbidden", details=details)
    assert submit(folder, "--group", "nlp") == ExitCode.OK
    assert len(waits) == 2


def test_submit_as_data(folder: str, world: World, capsys: Any) -> None:
    words = ("--group", "Vision_1", "--vc", "research", "--priority", "prod", "--format", "json")
    assert submit(folder, *words) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["job"]())
    assert (data["namespace"], data["virtual_cluster"], data["priority"]) == ("vision-1", "research", "prod")
    assert kinds(world) == ["jobset"]


@pytest.mark.parametrize(
    ("words", "changes", "code", "says"),
    [
        (("--group", "nobody"), {}, ExitCode.USAGE, "code: unknown-group"),
        (("--group", "nlp", "--vc", "research"), {}, None, "research"),
        (("--group", "nlp"), {"image": 3, "taskRoles": []}, ExitCode.SITE_INVALID, "job.json:1:"),
        (("--group", "nlp"), {"jobName": "a" * 60}, ExitCode.SITE_INVALID, "name"),
    ],
)
def test_what_is_not_submitted(
    folder: str, world: World, capsys: Any, words: tuple[str, ...], changes: dict[str, Any], code: int | None, says: str
) -> None:
    found = submit(folder, *words, **changes)
    assert found == code if code is not None else found in {ExitCode.USAGE, ExitCode.SITE_INVALID}
    assert says in capsys.readouterr().err
    assert not world.api.objects


def test_a_name_that_is_taken(folder: str, world: World, capsys: Any) -> None:
    world.api.refuses = ApiError("kubectl create failed", reason="AlreadyExists")
    assert submit(folder, "--group", "nlp") == ExitCode.STEP_FAILED
    assert "job-exists" in capsys.readouterr().err


def test_a_namespace_that_is_not_there_yet(folder: str, world: World, capsys: Any) -> None:
    world.api.refuses = ApiError("kubectl create failed", reason="NotFound")
    assert submit(folder, "--group", "nlp") == ExitCode.STEP_FAILED
    assert "namespace-missing" in capsys.readouterr().err


NATIVE = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  template: {spec: {containers: [{name: a, image: b, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""


def submit_objects(folder: str, text: str, *words: str) -> int:
    file = Path(folder) / "job.yaml"
    file.write_text(text)
    return run(["job", "submit", str(file), "--site", folder, "--user", "alice", "--group", "nlp", *words])


def test_kubernetes_own_objects(folder: str, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert submit_objects(folder, NATIVE) == ExitCode.OK
    own = world.api.objects[Ref("job", "train", "nlp")]
    assert own["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    settings = world.api.objects[Ref("configmap", "settings", "nlp")]
    assert [owner["name"] for owner in settings["metadata"]["ownerReferences"]] == ["train"]
    shown = capsys.readouterr()
    assert shown.err == snapshot
    assert shown.out.startswith("train: WAITING\n  of alice, group nlp (namespace nlp, Job train there)\n")
    assert run(["job", "stop", "job/train", "--site", folder, "--yes"]) == ExitCode.OK
    assert kinds(world) == ["configmap"]  # the cluster takes it with its owner


def test_several_objects_are_told_of_as_a_list(folder: str, world: World, capsys: Any) -> None:
    second = NATIVE.partition("---")[0].replace("name: train", "name: again")
    assert submit_objects(folder, f"{NATIVE}---\n{second}", "--format", "json") == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["jobs"]())
    assert {(one["kind"], one["name"]) for one in data["jobs"]} == {("Job", "train"), ("Job", "again")}
    owners = world.api.objects[Ref("configmap", "settings", "nlp")]["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in owners] == ["train", "again"]


@pytest.mark.parametrize(
    ("old", "new", "words", "says"),
    [
        ("{name: train}", "{name: train, namespace: other}", (), ""),
        ("parallelism: 2", "queue: x", ("--priority", "crit"), ""),
        (
            "{name: train}",
            "{name: train, labels: {kueue.x-k8s.io/priority-class: oppo}}",
            ("--priority", "prod"),
            "oppo is written here, but its priority is prod",
        ),
        ("batch/v1\nkind: Job", "kubeflow.org/v1\nkind: TFJob", (), "job.yaml:"),
    ],
)
def test_objects_that_contradict_what_they_are_given(
    folder: str, world: World, capsys: Any, old: str, new: str, words: tuple[str, ...], says: str
) -> None:
    found = submit_objects(folder, NATIVE.replace(old, new), *words)
    if not says:
        assert found == ExitCode.OK
        return
    assert found == ExitCode.SITE_INVALID
    assert says in capsys.readouterr().err
    assert not world.api.objects


def test_the_api_server_is_asked_in_the_name_of_the_owner_before_anything_is_created(folder: str, world: World) -> None:
    assert submit_objects(folder, NATIVE) == ExitCode.OK
    calls = [(name, subject) for name, subject in world.api.calls if name in ("dry_run", "create")]
    assert [name for name, _ in calls] == ["dry_run", "dry_run", "create", "create"]
    identities = [subject[1] for name, subject in calls if name == "dry_run"]
    assert identities == [Impersonation("system:serviceaccount:pai-users:alice", ("pai-install:submitters",)), None]
    person = ("--user", "oidc:al_ice@example.org")
    assert submit(folder, "--group", "nlp", *person, jobName="other") == ExitCode.OK
    last = [subject[1] for name, subject in world.api.calls if name == "dry_run"][-2]
    assert last.user == "oidc:al_ice@example.org"


@pytest.mark.parametrize(
    ("reason", "details", "code", "exit_code"),
    [
        ("Invalid", "The jobs is invalid: : ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no hostPID",
         "job-not-permitted", ExitCode.SITE_INVALID),
        ("Forbidden", "jobs.batch is forbidden: User \"x\" cannot create resource \"jobs\" in API group \"batch\"",
         "submitter-rights-missing", ExitCode.STEP_FAILED),
        ("Forbidden", "pods is forbidden: exceeded quota", "job-not-permitted", ExitCode.SITE_INVALID),
    ],
)  # fmt: skip
def test_what_the_policies_reject_is_not_created(
    folder: str, world: World, capsys: Any, reason: str, details: str, code: str, exit_code: ExitCode
) -> None:
    world.api.rejects = ApiError("kubectl create failed", reason=reason, details=details)
    assert submit_objects(folder, NATIVE) == exit_code
    assert code in capsys.readouterr().err
    assert not world.api.objects


def reached(folder: str) -> None:
    """A machine of the site was reached once."""
    path = state_of(Path(folder)).known_hosts
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_rejection_names_the_field_of_the_file(folder: str, world: World, capsys: Any) -> None:
    details = 'admission webhook "x" denied the request: spec.template.spec.containers[0].image: Required value'
    world.api.rejects = ApiError("kubectl create failed", reason="Invalid", details=details)
    assert submit_objects(folder, NATIVE) == ExitCode.SITE_INVALID
    place = next(line for line in capsys.readouterr().err.splitlines() if "job.yaml:" in line)
    assert "spec.template.spec.containers[0].image" in place
    world.api.calls.clear()
    reached(folder)
    words = ["job", "validate", "--site", folder, "--group", "nlp", f"{folder}/job.yaml"]
    assert run(words) == ExitCode.SITE_INVALID
    assert place.rpartition(": ")[0].strip() in capsys.readouterr().out
    assert {name for name, _subject in world.api.calls} == {"dry_run"}


@pytest.mark.parametrize("words", [["--offline"], []], ids=["offline", "no cluster"])
def test_validation_without_a_cluster(folder: str, world: World, capsys: Any, words: list[str]) -> None:
    reached(folder)
    world.api.rejects = NoClusterError({"master": "no route to host"})
    path = Path(folder) / "job.yaml"
    path.write_text(NATIVE)
    assert run(["job", "validate", "--site", folder, "--group", "nlp", *words, str(path)]) == ExitCode.OK
    asked = [name for name, _subject in world.api.calls]
    assert asked == ([] if words else ["dry_run"])
    assert ("cannot ask the cluster" in capsys.readouterr().err) is not bool(words)


def in_cluster(world: World, *objects: dict[str, Any]) -> None:
    for item in objects:
        kind = item["kind"].lower()
        world.api.objects[Ref(kind, item["metadata"]["name"], item["metadata"]["namespace"])] = item


def test_list_and_show(folder: str, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    waits = workload(holds("QuotaReserved", "no quota", "False"))
    in_cluster(world, job(), waits)
    assert run(["job", "list", "--site", folder]) == ExitCode.OK
    assert "WAITING" in capsys.readouterr().out
    assert run(["job", "list", "--site", folder, "--user", "bob"]) == ExitCode.OK
    assert capsys.readouterr().out == "no jobs\n"
    assert run(["job", "list", "--site", folder, "--group", "nlp", "--format", "json"]) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["jobs"]())
    assert data["jobs"] == []
    in_cluster(world, *WHOLE)
    assert run(["job", "show", "ps.job", "--site", folder]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown == snapshot
    assert run(["job", "show", "other", "--site", folder]) == ExitCode.USAGE


def test_jobs_of_the_scheduler_that_the_cluster_still_has_are_listed_and_stopped(
    folder: str, world: World, capsys: Any
) -> None:
    """After an edit of the site, until the cluster has the new scheduler."""
    scheduling = scheduling_of(load_site(Path(folder)).site)
    assert scheduling is not None
    in_cluster(world, job(), *WHOLE, kept_object(scheduling))
    services = Path(folder) / "services-configuration.yaml"
    services.write_text(services.read_text().replace("type: kueue", "type: volcano"))
    assert run(["job", "list", "--site", folder]) == ExitCode.OK
    assert "ps.job" in capsys.readouterr().out
    assert run(["job", "stop", "ps.job", "--site", folder, "--yes"]) == ExitCode.OK
    assert "jobset" not in kinds(world)


def test_a_job_that_can_never_start_says_so(folder: str, world: World, capsys: Any) -> None:
    """Its virtual cluster got smaller after it was submitted."""
    assert submit(folder, "--group", "nlp") == ExitCode.OK
    scheduling = scheduling_of(load_site(Path(folder)).site)
    assert scheduling is not None
    in_cluster(world, kept_object(scheduling))
    show = ["job", "show", "mnist_024", "--site", folder, "--format", "json"]
    capsys.readouterr()
    assert run(show) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["why"] == ""
    others = tuple(one for one in scheduling.clusters if one.name != "default")
    in_cluster(world, kept_object(replace(scheduling, clusters=others)))
    assert run(show) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["job"]())
    assert (data["state"], data["why"]) == ("WAITING", "can never start: default is no virtual cluster of this site")


def test_a_name_in_several_groups(folder: str, world: World, capsys: Any) -> None:
    other = job()
    other["metadata"] = {**other["metadata"], "namespace": "nlp"}
    in_cluster(world, job(), other)
    assert run(["job", "show", "ps.job", "--site", folder]) == ExitCode.USAGE
    assert "code: ambiguous-job" in capsys.readouterr().err
    assert run(["job", "show", "ps.job", "--site", folder, "--group", "nlp"]) == ExitCode.OK


def test_logs(folder: str, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    pending = pod("worker-v2", 1, "Pending", "")
    in_cluster(world, job(), *WHOLE[:3], pending)
    names = [one["metadata"]["name"] for one in WHOLE]
    world.api.logged = {names[0]: "from ps 0", names[2]: "from worker 0\nagain"}
    words = ["job", "logs", "ps.job", "--site", folder]
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    one = [*words, "--role", "worker-v2", "--index", "0"]
    assert run(one) == ExitCode.OK
    assert capsys.readouterr().out == "from worker 0\nagain"
    assert run([*one, "--follow"]) == ExitCode.OK
    assert capsys.readouterr().out == "from worker 0\nagain\n"
    assert run([*words, "--role", "worker-v2", "--index", "1"]) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
    for wrong, says in (
        (["--follow"], "cannot follow 4 instances"),
        (["--role", "boss"], "cannot find role boss in ps.job"),
        (["--index", "2"], "cannot find instance 2 of ps.job"),
    ):
        assert run([*words, *wrong]) == ExitCode.USAGE
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("--follow",)])
def test_output_of_a_job_cannot_steer_the_terminal(
    folder: str, world: World, capsys: Any, words: Sequence[str]
) -> None:
    in_cluster(world, job(), *WHOLE[:3])
    world.api.logged = {WHOLE[2]["metadata"]["name"]: "a\tb\x1b[2J\x9b\u202e"}
    one = ["job", "logs", "ps.job", "--site", folder, "--role", "worker-v2", "--index", "0", *words]
    assert run(one) == ExitCode.OK
    assert capsys.readouterr().out.rstrip("\n") == "a\tb\\u001b[2J\\u009b\\u202e"
    assert run([*one, "--raw"]) == ExitCode.OK
    assert capsys.readouterr().out.rstrip("\n") == "a\tb\x1b[2J\x9b\u202e"


def test_stop(folder: str, world: World, capsys: Any) -> None:
    in_cluster(world, job(), *WHOLE)
    assert run(["job", "stop", "ps.job", "--site", folder]) == ExitCode.USAGE
    assert "add --yes" in capsys.readouterr().err
    assert "jobset" in kinds(world)
    assert run(["job", "stop", "ps.job", "--site", folder, "--yes"]) == ExitCode.OK
    assert "jobset" not in kinds(world)


def record(own: dict[str, Any], *pods: dict[str, Any], removed: Removed | None = None) -> dict[str, Any]:
    """What the recorder keeps of a job."""
    return state_map(Record(kept_job(own), {pod_key(one): kept_pod(one) for one in pods}, removed))


def lines(own: dict[str, Any], **of: str) -> dict[str, Any]:
    return logs_map(own, {name.replace("_", "-"): text for name, text in of.items()})


def with_uid(own: dict[str, Any], uid: str, made: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return {**own, "metadata": {**own["metadata"], "uid": uid, "creationTimestamp": made}}


GONE = Removed(1767225700.0, "root", "the machine is needed")


def test_a_job_that_is_gone(folder: str, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    own = with_uid(job(), "one")
    in_cluster(world, record(own, *WHOLE, removed=GONE), lines(own, worker_v2_0_01="last words\n"))
    assert run(["job", "show", "ps.job", "--site", folder]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.startswith("ps.job: STOPPED: stopped by root: the machine is needed\n  of alice, group vision")
    assert shown == snapshot
    assert run(["job", "show", "jobset/ps-job", "--site", folder, "--format", "json"]) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["job"]())
    assert (data["state"], data["stopped_by"]) == ("STOPPED", "root")
    words = ["job", "logs", "ps.job", "--site", folder]
    one = [*words, "--role", "worker-v2", "--index", "0"]
    for asked in (one, [*one, "--follow"]):
        assert run(asked) == ExitCode.OK
        assert capsys.readouterr().out == "last words\n"
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().out == "worker-v2-0: last words\n"
    assert run(["job", "stop", "ps.job", "--site", folder, "--yes"]) == ExitCode.USAGE, "there is nothing to stop"
    for wrong in (["show", "other"], ["show", "job/ps.job"], ["show", "a b"], ["show", "ps.job", "--group", "nlp"]):
        assert run(["job", *wrong, "--site", folder]) == ExitCode.USAGE
        assert "code: unknown-job" in capsys.readouterr().err


def test_jobs_that_hold_their_machines_for_days(
    folder: str, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    begin = f"{datetime.now(UTC) - timedelta(days=329, hours=12):%Y-%m-%dT%H:%M:%SZ}"
    pods = [{**one, "status": {**one["status"], "startTime": begin}} for one in WHOLE]
    in_cluster(world, job(), *pods)
    assert run(["job", "list", "--abnormal", "--site", folder]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert run(["job", "list", "--abnormal", "--site", folder, "--format", "json"]) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["jobs"]())
    assert data["jobs"][0]["abnormal"].startswith("runs for ")
    assert run(["job", "list", "--abnormal", "--days", "99999", "--site", folder]) == ExitCode.OK
    assert capsys.readouterr().out == "no jobs\n"


def test_of_a_name_that_was_used_again(folder: str, world: World, capsys: Any) -> None:
    old, new = with_uid(job(), "old-1"), with_uid(job(conditions=[holds("Completed")]), "new-1", "2026-01-02T00:00:00Z")
    in_cluster(world, record(old, removed=GONE), record(new, removed=GONE))
    assert run(["job", "show", "ps.job", "--site", folder, "--format", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["state"] == "SUCCEEDED"
    living = with_uid(job(), "now-1", "2026-01-03T00:00:00Z")
    in_cluster(world, living, record(living))
    assert run(["job", "show", "ps.job", "--site", folder, "--format", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["state"] == "WAITING"
    assert run(["job", "list", "--site", folder, "--format", "json"]) == ExitCode.OK
    assert [one["state"] for one in json.loads(capsys.readouterr().out)["jobs"]] == ["WAITING"]
    assert run(["job", "list", "--all", "--site", folder, "--format", "json"]) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["jobs"]())
    assert [(one["state"], bool(one["gone"])) for one in data["jobs"]] == [
        ("STOPPED", True),
        ("SUCCEEDED", True),
        ("WAITING", False),
    ]


def test_pods_of_a_job_that_has_ended_are_gone_before_it(
    folder: str, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    own = with_uid(job(conditions=[holds("Completed")]), "one")
    in_cluster(world, own, *WHOLE[2:], record(own, *WHOLE), lines(own, ps_server_0_01="from ps", worker_v2_0_01="old"))
    world.api.logged = {"worker-v2-0-01": "from worker\n"}
    assert run(["job", "show", "ps.job", "--site", folder, "--format", "json"]) == ExitCode.OK
    roles = json.loads(capsys.readouterr().out)["roles"]
    assert [[one["gone"] for one in role["pods"]] for role in roles] == [[True, True], [False, False]]
    assert run(["job", "logs", "ps.job", "--site", folder]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot


def test_who_stops_a_job_says_why(folder: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    in_cluster(world, job())
    assert run(["job", "stop", "ps.job", "--site", folder, "--yes", "--why", "too long"]) == ExitCode.OK
    (patches,) = [subject for call, subject in world.api.calls if call == "patch"]
    notes = {"pai-install/stopped-by": "root", "pai-install/stopped-why": "too long"}
    assert patches[0].body == {"metadata": {"annotations": notes}}
    assert [call for call, _ in world.api.calls if call in ("patch", "delete_selected")] == ["patch", "delete_selected"]
    in_cluster(world, job(conditions=[holds("Completed")]))
    assert run(["job", "stop", "ps.job", "--site", folder, "--yes"]) == ExitCode.OK
    assert len([call for call, _ in world.api.calls if call == "patch"]) == 1, "what has ended was not stopped"


class Recorder:
    """A front end that keeps the states of watched jobs."""

    def __init__(self) -> None:
        self.states: list[str] = []

    def notify(self, event: Event) -> None:
        """Keeps it."""
        if isinstance(event, JobChanged):
            self.states.append(event.job.state)

    def confirm(self, _question: object) -> bool:
        """Agrees."""
        return True

    def require_answers(self) -> None:
        """It can answer."""


def seen(*states: JobState | None) -> tuple[JobState | None, list[str]]:
    """The last state of a watched job that has these states one after the other, and the states that it reports."""
    recorder, looks = Recorder(), iter(states)
    app = App(Path(), World(), recorder)
    return watch_job(app, lambda: next(looks), lambda _seconds: None), recorder.states


def test_watch_tells_each_change_once_until_the_end() -> None:
    waiting, running = stands(job()), stands(job(), *WHOLE)
    done = stands(job(conditions=[holds("Completed")]))
    found, told = seen(waiting, waiting, running, running, done)
    assert found == done
    assert told == ["WAITING", "RUNNING", "SUCCEEDED"]
    assert exit_code_of(found) == ExitCode.OK
    failed, _ = seen(stands(job(conditions=[holds("Failed", "a pod failed")])))
    assert exit_code_of(failed) == ExitCode.STEP_FAILED
    assert seen(running, None)[0] is None
    assert exit_code_of(None) == ExitCode.STEP_FAILED


def test_ctrl_c_leaves_the_job_running_and_says_so(
    folder: str, world: World, capsys: Any, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    def interrupted(*_words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pai_install.app.job_submission.watch_job", interrupted)
    assert submit(folder, "--group", "nlp", "--watch") == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == snapshot
    assert kinds(world) == ["jobset"]


def made(world: World) -> None:
    """A job with Secrets, made."""
    asked, place = servers_and_workers(), somewhere()
    own, *beside = objects_of(asked, place)
    made = JobManifest(asked.name, place, own, Document("job.yaml", of="job"))
    create_jobs(world.api, JobSubmission((made,), tuple(beside)))


def test_secrets_end_with_their_job(world: World) -> None:
    made(world)
    secrets = [item for ref, item in world.api.objects.items() if ref.kind == "secret"]
    assert {item["metadata"]["ownerReferences"][0]["name"] for item in secrets} == {"ps-job"}


def test_a_job_without_its_secrets_is_taken_back(world: World) -> None:
    class Half(FakeCluster):
        def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
            if objects[0]["kind"] == "Secret":
                raise ApiError("kubectl create failed", reason="Forbidden")
            return super().create(objects)

    world.api = Half()
    with raises("api-request-refused", kind=ApiError):
        made(world)
    assert not world.api.objects


def test_generated_name_is_a_new_one_each_time_and_is_printed(folder: str, world: World, capsys: Any) -> None:
    text = NATIVE.replace("{name: train}", "{generateName: train-}")
    for _ in range(2):
        assert submit_objects(folder, text) == ExitCode.OK
    jobs = [ref.name for ref in world.api.objects if ref.kind == "job"]
    assert len(set(jobs)) == 2
    printed = "".join(capsys.readouterr())
    assert all(name.startswith("train-") and len(name) == 11 and name in printed for name in jobs)
    made = next(item for ref, item in world.api.objects.items() if ref.kind == "job")
    assert "generateName" not in made["metadata"]
    assert made["metadata"]["labels"]["pai-install/job"] == made["metadata"]["name"]


def test_file_of_another_project_runs_in_the_namespace_of_the_group_with_a_warning(
    folder: str, world: World, capsys: Any
) -> None:
    assert submit_objects(folder, NATIVE.replace("{name: train}", "{name: train, namespace: kubeflow}")) == ExitCode.OK
    assert "kubeflow is not used" in "".join(capsys.readouterr())
    assert {ref.namespace for ref in world.api.objects if ref.kind in ("job", "configmap")} == {"nlp"}


def test_vc_replaces_the_queue_of_the_file(folder: str, world: World) -> None:
    text = NATIVE.replace("{name: train}", "{name: train, labels: {kueue.x-k8s.io/queue-name: theirs}}")
    assert submit_objects(folder, text) == ExitCode.SITE_INVALID
    assert submit_objects(folder, text, "--vc", "default") == ExitCode.OK
    (made,) = (item for ref, item in world.api.objects.items() if ref.kind == "job")
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"


def test_the_file_of_a_job_is_printed(folder: str, world: World, capsys: Any) -> None:
    assert submit(folder, "--group", "nlp") == ExitCode.OK
    capsys.readouterr()
    assert run(["job", "file", "mnist_024", "--site", folder]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == FILE


def test_the_file_of_a_deleted_job_is_in_its_record(folder: str, world: World, capsys: Any) -> None:
    assert submit(folder, "--group", "nlp") == ExitCode.OK
    made = world.api.objects.pop(Ref("jobset", "mnist-024", "nlp"))
    made["metadata"]["uid"] = "17"
    world.api.apply([state_map(Record(kept_job(made), {}, Removed(1_767_225_600)))])
    capsys.readouterr()
    assert run(["job", "file", "mnist_024", "--site", folder]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == FILE


def test_a_job_of_another_program_has_no_file(folder: str, world: World, capsys: Any) -> None:
    world.api.apply([job()])
    assert run(["job", "file", "ps.job", "--site", folder]) == ExitCode.STEP_FAILED
    assert "job-file-missing" in capsys.readouterr().err
