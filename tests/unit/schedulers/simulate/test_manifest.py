"""Jobs as they are submitted."""

from __future__ import annotations

import pytest

from pai_install.schedulers.simulate.manifest import CELLS, NoJobError, gang_of
from pai_install.schedulers.simulate.model import GangRole, Term

JOBSET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
  namespace: vision
  labels: {kueue.x-k8s.io/queue-name: research, kueue.x-k8s.io/priority-class: prod}
spec:
  replicatedJobs:
    - name: ps
      template: {spec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}}
    - name: worker
      replicas: 2
      template:
        spec:
          parallelism: 3
          completions: 2
          template:
            metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: example.com/rack}}
            spec:
              nodeSelector: {pai-install/sku: a100}
              tolerations: [{key: team, operator: Exists}]
              containers:
                - {name: c, resources: {limits: {nvidia.com/gpu: 8}, requests: {memory: 1Gi}}}
                - {name: d, resources: {limits: {nvidia.com/gpu: 0}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: one
  annotations:
    hivedscheduler.microsoft.com/pod-scheduling-spec: |
      virtualCluster: team
      priority: 100
      leafCellNumber: 4
      pinnedCellId: gpu-06
      ignoreK8sSuggestedNodes: false
spec:
  schedulerName: hivedscheduler-ds-team
  containers: [{name: c, resources: {limits: {hivedscheduler.microsoft.com/pod-scheduling-enable: 1}}}]
"""
VOLCANO = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: v}
spec:
  queue: research
  priorityClassName: oppo
  tasks: [{name: w, replicas: 4, template: {spec: {containers: [{resources: {requests: {cpu: 1}}}]}}}]
"""
KUBEFLOW = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: tf}
spec:
  tfReplicaSpecs:
    PS: {replicas: 1, template: {spec: {containers: [{resources: {requests: {cpu: 1}}}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{resources: {requests: {cpu: 2}}}]}}}
"""


def test_a_jobset() -> None:
    found = gang_of(JOBSET)
    assert (found.name, found.namespace, found.cluster, found.priority) == ("train", "vision", "research", "prod")
    assert found.roles == (
        GangRole("ps", 1, {"cpu": 0.5}),
        GangRole(
            "worker",
            4,
            {"nvidia.com/gpu": 8.0, "memory": float(2**30)},
            ((Term("pai-install/sku", "In", ("a100",)),),),
            (("team", "", ""),),
            "example.com/rack",
        ),
    )
    assert found.asks == {"cpu": 0.5, "nvidia.com/gpu": 32.0, "memory": float(4 * 2**30)}


def test_a_pod_of_hived() -> None:
    found = gang_of(POD)
    assert (found.cluster, found.priority, found.number, found.pinned) == ("team", "prod", 100, "gpu-06")
    assert found.roles == (GangRole("pod", 1, {CELLS: 4.0}),)


def test_a_job_of_volcano() -> None:
    found = gang_of(VOLCANO)
    assert (found.kind, found.cluster, found.priority, found.pods) == ("Volcano Job", "research", "oppo", 4)


def test_a_job_of_kubeflow() -> None:
    assert [(it.name, it.count) for it in gang_of(KUBEFLOW).roles] == [("ps", 1), ("worker", 2)]


def test_affinity_is_one_of_several_terms() -> None:
    text = """
apiVersion: batch/v1
kind: Job
metadata: {generateName: x-}
spec:
  template:
    spec:
      nodeSelector: {a: b}
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
        {matchExpressions: [{key: k, operator: NotIn, values: [v]}]},
        {matchExpressions: [{key: k, operator: Exists}]}]}}}
      containers: [{name: c}]
"""
    found = gang_of(text)
    plain = Term("a", "In", ("b",))
    assert found.name == "x-"
    assert found.roles[0].terms == ((plain, Term("k", "NotIn", ("v",))), (plain, Term("k", "Exists")))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "it is no YAML"),
        ("", "it holds 0 objects"),
        ("--- 1\n--- 2", "it holds 2 objects"),
        ("[1]", "it holds 1 objects"),
        ("{apiVersion: apps/v1, kind: Deployment}", "Deployment is no job that is known here"),
        ("{apiVersion: batch/v1, kind: Job, spec: {parallelism: 0}}", "it has no pods"),
        ("{apiVersion: batch.volcano.sh/v1alpha1, kind: Job}", "it has no pods"),
    ],
)
def test_no_job(text: str, why: str) -> None:
    with pytest.raises(NoJobError, match=why):
        gang_of(text)
