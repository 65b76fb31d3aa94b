"""What the kept files of tests/golden/jobs do not say by themselves."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.model import Job
from pai_install.jobs.place import Claim, JobPlace
from pai_install.schedulers.jobs import objects_of
from pai_install.scheduling.model import BACKENDS, Backend, Supply, UnqueuedLimit
from pai_install.scheduling.unqueued import CLASS
from tests.errors import raises
from tests.unit.jobs.examples import elastic, role, servers_and_workers, single, somewhere, whole
from tests.virtual_clusters import cores, gpus, share


def job_specs(job: Job, backend: Backend = "kueue", place: JobPlace | None = None) -> list[dict[str, Any]]:
    """The specs of the batch Jobs of a JobSet."""
    made = objects_of(job, place or somewhere(backend))[0]
    return [one["template"]["spec"] for one in made["spec"]["replicatedJobs"]]


def asked_of_hived(job: Job, *also: Supply) -> list[str]:
    """What the pods of each role ask HiveD for, on a site that has other machines, too, a share of them each."""
    place = somewhere("hived")
    shares = (*place.cluster.shares, *(share(it, it.units) for it in also))
    scheduling = replace(place.scheduling, supply={**place.scheduling.supply, **{it.sku: it for it in also}})
    specs = job_specs(
        job, "hived", replace(place, scheduling=scheduling, cluster=replace(place.cluster, shares=shares))
    )
    return [str(next(iter(it["template"]["metadata"]["annotations"].values()))) for it in specs]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_nobody_may_read_stands_in_secrets_alone(backend: Backend) -> None:
    own, *rest = objects_of(servers_and_workers(), somewhere(backend))
    assert "T0KEN" not in str(own)
    assert "pass-word" not in str([own, *rest])
    assert {one["kind"] for one in rest} == {"Secret"}
    assert "T0KEN" in str(rest)


@pytest.mark.parametrize("backend", BACKENDS)
def test_pods_of_the_first_role_alone_have_ports_for_their_owner(backend: Backend) -> None:
    job = replace(servers_and_workers(), web_port=8888, ssh_port=2222)
    spec = objects_of(job, somewhere(backend))[0]["spec"]
    pods = [
        one["template"] if backend == "volcano" else one["template"]["spec"]["template"]
        for one in spec["tasks" if backend == "volcano" else "replicatedJobs"]
    ]
    labels = [one["metadata"]["labels"] for one in pods]
    assert [one.get("pai-install/web-port") for one in labels] == ["8888", None]
    assert [one.get("pai-install/ssh-port") for one in labels] == ["2222", None]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_job_says_that_it_is_a_notebook(backend: Backend) -> None:
    for job, said in ((single(), None), (replace(single(), notebook=True), "true")):
        made = objects_of(job, somewhere(backend))[0]
        assert made["metadata"]["labels"].get("pai-install/notebook") == said


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_object_and_pod_says_whose_it_is(backend: Backend) -> None:
    for made in objects_of(servers_and_workers(), somewhere(backend)):
        assert made["metadata"]["labels"]["pai-install/user"] == "alice"
        assert made["metadata"]["namespace"] == "vision"
    spec = objects_of(single(), somewhere(backend))[0]["spec"]
    task = (
        spec["tasks"][0]["template"]
        if backend == "volcano"
        else spec["replicatedJobs"][0]["template"]["spec"]["template"]
    )
    assert task["metadata"]["labels"]["pai-install/user"] == "alice"


@pytest.mark.parametrize("backend", BACKENDS)
def test_pods_that_no_queue_counts_have_the_class_of_their_limit(backend: Backend) -> None:
    """The parameter servers have no devices, and only Kubernetes' own scheduler has no queue for them."""
    place = somewhere(backend)
    job = whole(servers_and_workers())
    for limit, expected in ((None, "prod"), (UnqueuedLimit(8, 2**30), CLASS)):
        at = replace(place, scheduling=replace(place.scheduling, unqueued=limit))
        found = dict(classes(objects_of(job, at)[0]))
        kept = {"kueue": "", "volcano": ""}.get(backend, "prod")
        assert found == {"ps-server": expected if backend == "default" else kept, "worker-v2": kept}


def classes(made: Any) -> Iterator[tuple[str, str]]:
    """The class of the pods of each role, empty where the job has it."""
    for one in made["spec"].get("replicatedJobs") or made["spec"]["tasks"]:
        spec = one["template"]["spec"]
        yield one["name"], spec.get("template", {}).get("spec", spec).get("priorityClassName", "")


def test_folder_of_one_node_brings_the_pods_there() -> None:
    """Kueue chooses a node by the selector alone, and its pods would wait without end for the volume of another."""
    place = somewhere("kueue")
    place = replace(place, claims={**place.claims, "scratch": Claim("scratch", machine="w2")})
    for spec in job_specs(servers_and_workers(), place=place):
        assert spec["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] == "w2"


@pytest.mark.parametrize(
    "command",
    ["echo $$ $HOME '$$(X)' $(echo $PAI_TASK_INDEX)", 'a="1"\nfalse\necho "$a"', "[[ a == a ]] && echo bash"],
)
def test_a_shell_gets_the_command_as_it_was_written(command: str) -> None:
    (spec,) = job_specs(Job("a", (role("main", command=command),)))
    words = spec["template"]["spec"]["containers"][0]["command"]
    # Kubernetes makes $ of $$ and leaves $(NAME) alone where there is no such variable
    given = [word.replace("$$", "\0").replace("\0", "$") for word in words]
    assert given[-1] == command
    shown = subprocess.run(given, capture_output=True, text=True, check=False, env={"PAI_TASK_INDEX": "3"})
    direct = subprocess.run(
        ["/bin/bash", "-c", command], capture_output=True, text=True, check=False, env={"PAI_TASK_INDEX": "3"}
    )
    if "$$ " not in command:  # another process has another number
        assert (shown.stdout, shown.returncode) == (direct.stdout, direct.returncode)


def test_how_many_may_fail_and_must_succeed() -> None:
    (spec,) = job_specs(elastic())
    assert (spec["maxFailedIndexes"], spec["backoffLimitPerIndex"]) == (1, 1)
    assert spec["successPolicy"] == {"rules": [{"succeededCount": 3}]}
    (spec,) = job_specs(Job("a", (role("main", 2, min_failed=None),)))
    assert spec["maxFailedIndexes"] == 2
    assert "successPolicy" not in spec


@pytest.mark.parametrize(("retries", "most"), [(0, 0), (3, 3), (None, 2**31 - 1)])
def test_retries_of_the_whole_job(retries: int | None, most: int) -> None:
    made = objects_of(replace(single(), retries=retries), somewhere())[0]
    assert made["spec"]["failurePolicy"] == {"maxRestarts": most}


def test_volcano_refuses_what_it_cannot_count() -> None:
    job = elastic().roles[0]
    for changed, message in (
        (job, "when 2 of trial have failed"),
        (replace(job, min_failed=1), "when 3 of 4 trial succeeded"),
        (replace(job, min_failed=1, min_succeeded=4), "retry one instance of trial"),
    ):
        with pytest.raises(PaiError, match=message):
            objects_of(Job("a", (changed,)), somewhere("volcano"))


@pytest.mark.parametrize(("backend", "room"), [("kueue", 48), ("default", 48), ("hived", 48), ("volcano", 56)])
def test_a_name_that_is_too_long_is_refused_with_how_long_it_may_be(backend: Backend, room: int) -> None:
    """The longest name makes pods' names of 63 characters: NAME-main-0-0-abcde, or NAME-main-0 with Volcano."""
    assert objects_of(replace(single(), name="a" * room), somewhere(backend))
    with pytest.raises(PaiError, match=f"has {room + 1} characters, and with role main at most {room}") as caught:
        objects_of(replace(single(), name="a" * (room + 1)), somewhere(backend))
    assert caught.value.exit_code == ExitCode.SITE_INVALID


def test_two_roles_with_one_name() -> None:
    with raises("role-names-collide", "a_b", "a-b"):
        objects_of(Job("a", (role("a_b"), role("a-b"))), somewhere())


def test_hived_gets_the_sku_by_the_name_of_its_configuration() -> None:
    """A dot divides types there."""
    placed, sku = somewhere("hived"), "v1.5/a"
    supply = replace(next(iter(placed.scheduling.supply.values())), sku=sku)
    cluster = replace(placed.cluster, shares=(replace(placed.cluster.shares[0], sku=sku),))
    placed = replace(placed, scheduling=replace(placed.scheduling, supply={sku: supply}), cluster=cluster)
    jobset = next(iter(objects_of(Job("a", (role("main", gpus=1, sku=sku),)), placed)))
    assert "leafCellType: v1-5-a\\n" in json.dumps(jobset)


def test_hived_gives_cells_for_processors_too(snapshot: SnapshotAssertion) -> None:
    """A unit of the site has 11.7 processors: 24 of them are 3 cells."""
    big = role("main")
    job = Job("a", (replace(big, resources=replace(big.resources, cpu=24)), role("w", 2, 4)))
    (spec, _) = job_specs(job, "hived")
    note = spec["template"]["metadata"]["annotations"]["hivedscheduler.microsoft.com/pod-scheduling-spec"]
    assert note == snapshot
    assert note.endswith("  - podNumber: 1\n    leafCellNumber: 3\n  - podNumber: 2\n    leafCellNumber: 4")


@pytest.mark.parametrize("other", [cores("epyc", 2), gpus("npu", 2, 8, "huawei.com/Ascend910")], ids=["cores", "npu"])
def test_hived_is_told_which_machines_have_what_a_job_needs(other: Supply) -> None:
    """It takes any cells else, those of machines without devices, too; all roles of a group are on one type."""
    job = Job("a", (role("ps", 2), role("worker", 2, 4)))
    if other.resource:
        job = Job("a", (role("ps", 2), role("worker", 2, 4, sku="a100")))
    notes = asked_of_hived(job, other)
    assert all("leafCellType: a100\nleafCellNumber: " in note for note in notes), notes
    assert all(
        note.endswith("podNumber: 2\n    leafCellNumber: 1\n  - podNumber: 2\n    leafCellNumber: 4") for note in notes
    )
    assert not any("leafCellType" in note for note in asked_of_hived(job)) or other.resource


def test_hived_gives_a_job_without_devices_no_machine_that_has_some() -> None:
    (note,) = asked_of_hived(Job("a", (role("main", 2),)), cores("epyc", 2))
    assert "leafCellType: epyc\nleafCellNumber: 2\n" in note
