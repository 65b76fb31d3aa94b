"""What jobs use with Kubernetes' own scheduler, as far as namespaces say whose they are."""

from __future__ import annotations

from pai_install.schedulers.kubernetes.usage import kubernetes_seen
from pai_install.scheduling.usage.model import UnfinishedJob, Use
from tests.unit.scheduling.usage.objects import pod
from tests.virtual_clusters import cluster, cores, gpus, share, site

SUPPLY, PLAIN = gpus("a100", 2), cores("cpu", 1)
SITE = site(
    SUPPLY,
    PLAIN,
    clusters=(
        cluster("research", share(SUPPLY, 8), share(PLAIN, 8), groups=("vision",)),
        cluster("product", groups=("nlp",)),
        cluster("lab", groups=("nlp", "team")),
    ),
)


def test_pods_by_namespace() -> None:
    asks = {"nvidia.com/gpu": "4", "cpu": "500m"}
    pods = [
        pod("a-1", "a100-1", job="a", asks=asks),
        pod("a-2", job="a", asks=asks),
        pod("b-1", job="b", asks=asks),
        pod("c", "cpu-1", asks={"cpu": "500m"}),
        pod("d", "cpu-1", asks={"cpu": "600m"}),
        pod("e", "a100-2", namespace="nlp", asks=asks),
        pod("f", "a100-2", "Failed", asks=asks),
    ]
    seen = kubernetes_seen(SITE, {"pods": pods})
    assert seen.uses == (Use("research", "a100", 4), Use("research", "cpu", 2))
    assert seen.unknown == {"product", "lab"}
    assert UnfinishedJob("research", "vision/a", waits=False, units={"nvidia.com/gpu": 8}) in seen.jobs
    assert UnfinishedJob("research", "vision/b", waits=True, units={"nvidia.com/gpu": 4}) in seen.jobs
    assert len(seen.jobs) == 4
