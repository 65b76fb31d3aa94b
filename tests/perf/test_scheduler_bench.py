"""The parts of `make bench-scheduler` that need no cluster."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from pai_install.scheduling.model import Backend
from tests.perf.scheduler_bench import GPU, Result, gang, gangs, judge, nodes, site_of, size_of


def pods_of(name: str, size: int, units: int, bound: int) -> list[dict[str, Any]]:
    """All of a gang's; so many of them with a machine."""
    template = gang("default", name, "a", size, units)["spec"]["template"]
    return [
        {
            "metadata": {"namespace": "a", "labels": template["metadata"]["labels"]},
            "spec": {**template["spec"], **({"nodeName": "gpu-000"} if number < bound else {})},
        }
        for number in range(size)
    ]


def test_the_site_is_shared_without_a_rest() -> None:
    site = site_of("default")
    assert sum(it.shares[0].units for it in site.clusters) == site.supply["pai-bench"].total == 1600
    assert len(list(nodes(site))) == 200


@pytest.mark.parametrize("backend", [it for it in get_args(Backend) if it != "hived"])
def test_gangs_ask_for_more_than_there_is_and_each_virtual_cluster_for_more_than_its_own(backend: Backend) -> None:
    asked: dict[str, int] = {}
    for job in gangs(site_of(backend)):
        spec = job["spec"]
        template = spec["tasks"][0]["template"] if backend == "volcano" else spec["template"]
        units = int(template["spec"]["containers"][0]["resources"]["limits"][GPU])
        space = job["metadata"]["namespace"]
        asked[space] = asked.get(space, 0) + units * size_of(job)
    assert len(asked) == 10
    assert all(units > 160 for units in asked.values())


def test_judge_tells_whole_from_partial_and_who_has_too_much() -> None:
    sizes = {"two": 2, "one": 1}
    assert judge("x", 3.0, sizes, [*pods_of("two", 2, 8, 1), *pods_of("one", 1, 8, 1)], 8) == Result(
        "x", 3, 2, 1, 1, 8, 1
    )
    assert judge("x", 3.0, sizes, pods_of("two", 2, 8, 2), 16) == Result("x", 3.0, 2, 1, 0, 0, 0)
