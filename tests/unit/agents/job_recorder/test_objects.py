"""What is read of objects, whatever is in them."""

from __future__ import annotations

from pai_install.agents.job_recorder import objects
from tests.unit.agents.job_recorder.objects import job, pod


def test_a_pod_of_a_jobset_is_the_jobsets() -> None:
    item = pod(3, job="train-worker-1")
    item["metadata"]["labels"] |= {
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "jobset.sigs.k8s.io/job-index": "1",
    }
    assert objects.job_of(item) == ("jobset.x-k8s.io", "train")
    assert objects.pod_key(item) == "worker/1/3"


def test_pods_without_a_number_are_known_by_their_names() -> None:
    item = pod(0)
    del item["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
    assert objects.pod_key(item) == "train-0-0"


def test_a_job_that_another_made_is_none() -> None:
    item = job()
    assert objects.is_job(item)
    item["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "train", "controller": True}]
    assert not objects.is_job(item)


def test_the_jobs_own_container_is_the_first() -> None:
    item = pod(0)
    item["spec"]["containers"] = [{"name": "main"}, {"name": "beside"}]
    item["status"]["containerStatuses"] = [
        {"name": "beside", "state": {"running": {}}},
        {"name": "main", "state": {"terminated": {"exitCode": 7, "message": "x" * 9999}}},
    ]
    assert objects.container_of(item) == "main"
    kept = objects.kept_pod(item)["status"]["containerStatuses"][0]
    assert kept["name"] == "main"
    assert len(kept["state"]["terminated"]["message"]) == 400
    assert not objects.is_over(item)


def test_what_somebody_else_wrote_there_is_no_reason_to_fail() -> None:
    for broken in ({}, {"metadata": None}, {"metadata": {"labels": 3}, "spec": [], "status": "x"}, {"kind": "Pod"}):
        assert not objects.is_job(broken)
        assert objects.kept_job(broken)["kind"] == broken.get("kind", "")
        assert objects.kept_pod(broken)["status"]["containerStatuses"] == []
        assert objects.pod_key(broken) == ""
