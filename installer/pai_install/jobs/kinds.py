"""Kinds of Kubernetes objects that are jobs: where their pods are, and which scheduler queues them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pai_install.scheduling.model import Backend
from pai_install.site.problem import YamlPath

_POD = ("template", "spec")


@dataclass(frozen=True, slots=True)
class NativeKind:
    """A kind of job.

    templates: keys on the way to the specification of pods, '*' for each entry. counts: keys above a template that say
    how many pods. required: keys of the way that must be there. queue: where it names its queue, beside Kueue's label.
    backends: schedulers that queue it, and start its pods together.
    """

    api: str
    name: str
    templates: tuple[tuple[str, ...], ...]
    counts: tuple[str, ...]
    backends: tuple[Backend, ...]
    required: tuple[str, ...] = ("spec",)
    queue: YamlPath = ()

    @property
    def shown(self) -> str:
        """As messages call it."""
        return f"{self.name} ({self.api})"


def _kubeflow(name: str, roles: str, api: str = "kubeflow.org/v1") -> NativeKind:
    queue: YamlPath = ("spec", "runPolicy", "schedulingPolicy", "queue")
    return NativeKind(api, name, (("spec", roles, "*", *_POD),), ("replicas",), ("volcano",), ("spec", roles), queue)


_ALL = (
    NativeKind("v1", "Pod", (("spec",),), (), ("volcano", "default", "hived")),
    NativeKind(
        "batch/v1",
        "Job",
        (("spec", *_POD),),
        ("parallelism",),
        ("kueue", "volcano", "default", "hived"),
        ("spec", "template"),
    ),
    NativeKind(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        (("spec", "replicatedJobs", "*", "template", "spec", *_POD),),
        ("parallelism", "replicas"),
        ("kueue",),
        ("spec", "replicatedJobs"),
    ),
    NativeKind(
        "batch.volcano.sh/v1alpha1",
        "Job",
        (("spec", "tasks", "*", *_POD),),
        ("replicas",),
        ("volcano",),
        ("spec", "tasks"),
        ("spec", "queue"),
    ),
    _kubeflow("TFJob", "tfReplicaSpecs"),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs"),
    _kubeflow("MPIJob", "mpiReplicaSpecs"),
    _kubeflow("MPIJob", "mpiReplicaSpecs", "kubeflow.org/v2beta1"),
)
KINDS: Mapping[tuple[str, str], NativeKind] = {(kind.api, kind.name): kind for kind in _ALL}
# what may stand in a file beside a job
COMPANIONS = frozenset({("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Service")})
