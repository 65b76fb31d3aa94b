"""Kubernetes' own objects on their way to the cluster: what is put in, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.jobs.kubernetes import KubernetesFile
from pai_install.jobs.place import JobPlace
from pai_install.jobs.read import read_job_text
from pai_install.schedulers.admission import reject
from pai_install.schedulers.defaulting import contradictions, native_objects
from pai_install.scheduling.model import Backend
from tests.unit.jobs.examples import somewhere

MARKS = {
    "pai-install/user": "alice",
    "pai-install/group": "vision",
    "pai-install/job": "train",
    "pai-install/virtual-cluster": "research",
}
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  parallelism: 2
  template:
    metadata: {labels: {app: own}}
    spec:
      restartPolicy: Never
      containers:
        - {name: a, image: b, resources: {limits: {cpu: 1}}}
      volumes:
        - {name: none, emptyDir: }
        - {name: mode, secret: {secretName: alice.key, defaultMode: 0440}}
"""
TASKS = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 2
  tasks:
    - {name: ps, replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}
    - {name: worker, replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}
"""
TFJOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: train}
spec:
  tfReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: b}]}}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: train
  annotations:
    hivedscheduler.microsoft.com/pod-scheduling-spec: |
      virtualCluster: research
      priority: 100
      leafCellNumber: 1
      ignoreK8sSuggestedNodes: false
spec:
  containers: [{name: a, image: b, resources: {limits: {hivedscheduler.microsoft.com/pod-scheduling-enable: 1}}}]
"""
BESIDE = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {own: "true"}}
data: {rate: "0.1"}
"""


def native(text: str) -> KubernetesFile:
    reading = read_job_text(text, Path("job.yaml"))
    assert isinstance(reading.job, KubernetesFile), reading.problems
    return reading.job


def made(text: str, backend: Backend) -> dict[str, Any]:
    job = native(text)
    (own,), _ = native_objects(job, {job.name: somewhere(backend)})
    return own


def told(text: str, backend: Backend = "kueue") -> list[str]:
    job = native(text)
    places: dict[str, JobPlace] = {one.name: somewhere(backend) for one in job.jobs}
    contradictions(job, places)
    reject(job, places)
    return [f"{one.line}:{one.column} {one.message}" for document in job.documents for one in document.problems]


def test_all_else_stays_as_it_is() -> None:
    own = made(JOB, "kueue")
    assert own["metadata"] == {
        "name": "train",
        "namespace": "vision",
        "labels": {
            **MARKS,
            "kueue.x-k8s.io/queue-name": "research",
            "kueue.x-k8s.io/priority-class": "prod",
        },
        "annotations": {"pai-install/priority": "prod"},
    }
    template = own["spec"].pop("template")
    assert own["spec"] == {"parallelism": 2}
    assert template["metadata"] == {"labels": {"app": "own", **MARKS}}
    assert template["spec"] == {
        "restartPolicy": "Never",
        "containers": [{"name": "a", "image": "b", "resources": {"limits": {"cpu": 1}}}],
        "volumes": [
            {"name": "none", "emptyDir": None},
            {"name": "mode", "secret": {"secretName": "alice.key", "defaultMode": 0o440}},
        ],
    }
    assert told(JOB) == []


def test_volcano_jobs_name_their_queue() -> None:
    own = made(TASKS, "volcano")
    spec = own["spec"]
    assert (spec["queue"], spec["priorityClassName"], spec["schedulerName"]) == ("research", "prod", "volcano")
    assert [task["template"]["metadata"]["labels"] for task in spec["tasks"]] == [MARKS] * 2
    assert "kueue.x-k8s.io/queue-name" not in own["metadata"]["labels"]


def test_kubeflow_jobs_name_it_in_their_policy() -> None:
    policy = {"schedulingPolicy": {"queue": "research", "priorityClass": "prod"}}
    assert made(TFJOB, "volcano")["spec"]["runPolicy"] == policy
    assert "runPolicy" not in made(TFJOB, "kueue")["spec"]


def test_pods_name_it_where_nothing_above_them_does() -> None:
    volcano = made(JOB, "volcano")["spec"]["template"]
    assert volcano["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "research"}
    assert (volcano["spec"]["schedulerName"], volcano["spec"]["priorityClassName"]) == ("volcano", "prod")
    plain = made(JOB, "default")["spec"]["template"]
    assert "schedulerName" not in plain["spec"]
    assert plain["spec"]["priorityClassName"] == "prod"
    assert "schedulerName" not in made(JOB, "hived")["spec"]["template"]["spec"]
    hived = made(POD, "hived")
    assert hived["spec"]["schedulerName"] == "hivedscheduler-ds-research"
    assert hived["metadata"]["labels"] == MARKS
    assert told(POD, "hived") == []


def test_what_goes_with_a_job_is_marked_too() -> None:
    job = native(JOB + BESIDE)
    _, (settings,) = native_objects(job, {"train": somewhere()})
    assert settings["metadata"]["namespace"] == "vision"
    labels = {"own": "true", "pai-install/user": "alice", "pai-install/group": "vision"}
    assert settings["metadata"]["labels"] == labels
    assert settings["data"] == {"rate": "0.1"}


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("name: train", "name: train\n  namespace: other", "5:3", "jobs of vision run in vision"),
        (
            "name: train",
            "name: train\n  labels: {kueue.x-k8s.io/queue-name: product}",
            "5:12",
            "virtual cluster research",
        ),
        ("name: train", "name: train\n  labels: {kueue.x-k8s.io/priority-class: test}", "5:12", "priority is prod"),
        ("{app: own}", "{pai-install/user: bob}", "8:25", "the job is alice's"),
    ],
)
def test_what_is_refused_and_where(old: str, new: str, place: str, words: str) -> None:
    assert old in JOB
    (found,) = told(JOB.replace(old, new, 1))
    assert found.startswith(f"{place} "), found
    assert words in found


def test_secrets_of_the_file_are_its_own(snapshot: SnapshotAssertion) -> None:
    secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: NAME}\n"
    assert told(JOB.replace("alice.key", "key") + secret.replace("NAME", "key")) == []
    (found,) = told(JOB + secret.replace("NAME", "bob.key"))
    assert found == snapshot


def test_services_open_no_port_of_a_machine(snapshot: SnapshotAssertion) -> None:
    service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: ps}\nspec: {clusterIP: None, type: NodePort}\n"
    (found,) = told(JOB + service)
    assert found == snapshot
    assert told(JOB + service.replace(", type: NodePort", "")) == []


def test_devices_that_no_queue_would_count(snapshot: SnapshotAssertion) -> None:
    devices = JOB.replace("cpu: 1", "nvidia.com/gpu: 1")
    assert told(devices) == []
    assert told(devices.replace("restartPolicy: Never", "nodeName: g1"))[0] == snapshot
    assert told(devices.replace("restartPolicy: Never", "priorityClassName: prod"))[0] == snapshot
    assert told(devices, "hived")[0] == snapshot
    (found,) = told(POD.replace("      virtualCluster: research\n", ""), "hived")
    assert found == snapshot


def test_a_gang_of_hived_has_the_name_of_its_namespace() -> None:
    line = "      ignoreK8sSuggestedNodes: false\n"
    members = "        members:\n        - {podNumber: 1, leafCellNumber: 1}\n"

    def gang(name: str) -> list[str]:
        return told(POD.replace(line, f"{line}      affinityGroup:\n        name: {name}\n{members}"), "hived")

    for name in ("training", "speech.training", "'vision.training'"):
        (found,) = gang(name)
        assert "vision." in found
    assert gang("vision.training") == []
