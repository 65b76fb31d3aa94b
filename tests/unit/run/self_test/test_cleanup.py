"""Names of what is removed; the removal itself is tested with whole runs in test_runner.py."""

from __future__ import annotations

from pai_install.kube.model import Ref
from pai_install.run.self_test.cleanup import ref_of


def test_refs_have_the_group_of_their_kind() -> None:
    def ref(api: str, kind: str) -> Ref:
        return ref_of({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "y"}})

    assert ref("batch.volcano.sh/v1alpha1", "Job") == Ref("jobs.batch.volcano.sh", "x", "y")
    assert ref("kueue.x-k8s.io/v1beta2", "Topology").kind == "topologies.kueue.x-k8s.io"
    assert ref("scheduling.k8s.io/v1", "PriorityClass").kind == "priorityclasses.scheduling.k8s.io"
    assert ref("v1", "Namespace").kind == "namespaces"
