"""Where a job may go, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.model import Job, JobMount
from pai_install.jobs.place import Claim, JobOwner, JobPlace, place
from pai_install.profile.model import ProfileGrant
from pai_install.scheduling.model import Scheduling
from tests.errors import raises
from tests.unit.jobs.examples import OWNER, role, single
from tests.virtual_clusters import cluster, cores, gpus, mixed, share, site, two_teams


def placed(job: Job, scheduling: Scheduling | None = None, **more: Any) -> JobPlace:
    wish = more.get("cluster"), more.get("priority")
    owner = more.get("owner", OWNER)
    return place(job, scheduling or two_teams(), owner, more.get("grants", ()), wish)


def test_the_only_virtual_cluster_and_its_usual_priority() -> None:
    found = placed(single())
    assert (found.cluster.name, found.priority) == ("research", "test")


def test_the_command_line_counts_before_the_file() -> None:
    job = replace(single(), virtual_cluster="product", priority="crit")
    found = placed(job, cluster="research", priority="oppo")
    assert (found.cluster.name, found.priority) == ("research", "oppo")


def test_default_where_there_are_several() -> None:
    supply = gpus("a100", 2)
    several = site(
        supply,
        clusters=(
            cluster("batch", share(supply, 8), groups=("vision",)),
            cluster("default", share(supply, 8), groups=("vision",)),
        ),
    )
    assert placed(single(), several).cluster.name == "default"


@pytest.mark.parametrize(
    ("job", "more", "message", "remedy"),
    [
        (single(), {"cluster": "product"}, "group vision may not submit to product", "research"),
        (single(), {"cluster": "reserch"}, "reserch is no virtual cluster", "research"),
        (single(), {"owner": JobOwner("a", "guests", "guests")}, "group guests may submit to no", "vc list"),
        (single(), {"owner": JobOwner("a b", "vision", "vision")}, "'a b' is no name for a user", "--user"),
        (
            single(),
            {"owner": JobOwner("a", "product", "product"), "priority": "crit"},
            "jobs of product may not have the priority crit",
            "prod, test, oppo",
        ),
        (Job("a", (role("main", sku="t4"),)), {}, "research has no machines t4", "a100"),
        (
            replace(single(), mounts=(JobMount("data", "/mnt"),)),
            {},
            "not granted the storage data",
            "storage grant data",
        ),
    ],
)
def test_what_may_not_be(job: Job, more: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(PaiError, match=message) as caught:
        placed(job, **more)
    assert caught.value.exit_code == ExitCode.USAGE
    assert remedy in caught.value.remedy


def test_devices_where_there_are_none() -> None:
    plain = cores("cpu", 2)
    only = site(plain, clusters=(cluster("vision", share(plain, 4)),))
    with raises("devices-not-in-virtual-cluster"):
        placed(single(), only)
    assert placed(Job("a", (role("main"),)), only).cluster.name == "vision"


def test_devices_of_several_makers_have_to_be_named() -> None:
    owner = JobOwner("alice", "team-a", "team-a")
    with raises("sku-ambiguous", "v100"):
        placed(single(), mixed(), cluster="asia", priority="test", owner=owner)
    job = Job("a", (role("main", gpus=2, sku="npu"),))
    found = placed(job, mixed(), cluster="asia", priority="test", owner=owner)
    assert found.supply(job.roles[0]).resource == "huawei.com/Ascend910"


def test_storages_by_the_claims_that_new_jobs_use() -> None:
    grants = (
        ProfileGrant(storage="data", group="vision", claim="data-g2", shared=True),
        ProfileGrant(storage="data", group="vision", claim="data", shared=True, current=False),
        ProfileGrant(storage="data", group="nlp", claim="data", shared=True),
        ProfileGrant(storage="home", group="vision", claim="home", shared=False),
    )
    job = replace(single(), mounts=(JobMount("data", "/mnt/data"), JobMount("home", "/mnt/home")))
    assert placed(job, grants=grants).claims == {"data": Claim("data-g2"), "home": Claim("home", "alice")}


def test_folders_of_different_nodes_are_refused() -> None:
    grants = [
        ProfileGrant(storage=name, group="vision", claim=name, shared=True, machine=machine)
        for name, machine in (("fast", "w1"), ("other", "w2"), ("data", ""))
    ]
    job = replace(single(), mounts=(JobMount("fast", "/a"), JobMount("data", "/b")))
    assert placed(job, grants=grants).machine == "w1"
    job = replace(job, mounts=(*job.mounts, JobMount("other", "/c")))
    with raises("storages-on-different-nodes", "fast on w1, other on w2"):
        placed(job, grants=grants)
