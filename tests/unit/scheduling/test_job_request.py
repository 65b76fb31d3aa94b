"""Jobs as they are submitted."""

from __future__ import annotations

import pytest

from pai_install.scheduling.job_request import JobRequestError, PodRequest, read_job_request

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
    found = read_job_request(JOBSET)
    assert (found.name, found.namespace, found.queue.cluster, found.queue.priority) == (
        "train",
        "vision",
        "research",
        "prod",
    )
    assert found.pods == (
        PodRequest("ps", 1, {"cpu": 0.5}),
        PodRequest("worker", 4, {"nvidia.com/gpu": 8.0, "memory": float(2**30)}, sku="a100"),
    )
    assert found.pod_count == 5


def test_a_pod_of_hived() -> None:
    found = read_job_request(POD)
    assert (found.queue.cluster, found.queue.priority, found.queue.number) == ("team", "prod", 100)
    assert found.pods == (PodRequest("pod", 1, {}, cells=4, pin="gpu-06"),)


def test_a_job_of_volcano() -> None:
    found = read_job_request(VOLCANO)
    assert (found.kind.group, found.queue.cluster, found.queue.priority, found.pod_count) == (
        "batch.volcano.sh",
        "research",
        "oppo",
        4,
    )


def test_a_job_of_kubeflow() -> None:
    assert [(it.role, it.count) for it in read_job_request(KUBEFLOW).pods] == [("ps", 1), ("worker", 2)]


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "",
        "--- 1\n--- 2",
        "[1]",
        "{apiVersion: apps/v1, kind: Deployment}",
        "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 0}}",
        "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job}",
    ],
)
def test_texts_that_are_not_one_job(text: str) -> None:
    with pytest.raises(JobRequestError):
        read_job_request(text)


def test_a_hostile_annotation_asks_for_nothing() -> None:
    """RecursionError of the parser once ended `vc usage` of an administrator."""
    deep = POD.replace("virtualCluster: team", f"virtualCluster: {'[' * 5000}")
    assert read_job_request(deep).pods == (PodRequest("pod", 1, {}),)
