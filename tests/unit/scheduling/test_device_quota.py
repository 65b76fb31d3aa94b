"""The most devices that a group may hold."""

from __future__ import annotations

from pai_install.schedulers.compile import objects_of
from pai_install.scheduling.device_quota import QUOTA, device_quotas
from pai_install.scheduling.model import BACKENDS, Scheduling
from tests.virtual_clusters import cluster, cores, gpus, share, site, with_backend


def limits(scheduling: Scheduling) -> dict[str, dict[str, str]]:
    """Namespace -> its limits."""
    return {it["metadata"]["namespace"]: it["spec"]["hard"] for it in device_quotas(scheduling)}


def test_a_group_may_hold_what_its_virtual_clusters_own_and_borrow() -> None:
    a100, v100 = gpus("a100", 4), gpus("v100", 2)
    one = cluster(
        "one", share(a100, 8, borrow=4), share(v100, 2, borrow=0), pinned=("v100-1",), groups=("vision", "nlp")
    )
    other = cluster("other", share(a100, 6, borrow=0), groups=("nlp",))
    found = limits(site(a100, v100, clusters=(one, other)))
    assert found["vision"] == {"requests.nvidia.com/gpu": "22"}
    assert found["nlp"] == {"requests.nvidia.com/gpu": "28"}


def test_a_group_that_borrows_without_a_limit_may_hold_all_devices_of_the_kind() -> None:
    a100, mi300 = gpus("a100", 4), gpus("mi300", 2, resource="amd.com/gpu")
    found = limits(site(a100, mi300, clusters=(cluster("one", share(a100, 1), share(mi300, 2, borrow=1)),)))
    assert found["one"] == {"requests.nvidia.com/gpu": "32", "requests.amd.com/gpu": "3"}


def test_a_site_without_devices_has_no_limit_of_them() -> None:
    processors = cores("epyc", 2)
    assert limits(site(processors, clusters=(cluster("one", share(processors, 8)),))) == {}


def test_only_where_no_pod_waits_for_its_queue_a_quota_counts_pods() -> None:
    a100 = gpus("a100", 1)
    made = site(a100, clusters=(cluster("one", share(a100, 8)),))
    names = {it: [one["metadata"]["name"] for one in objects_of(with_backend(made, it))] for it in BACKENDS}
    assert {it for it in BACKENDS if QUOTA in names[it]} == {"kueue", "default"}
