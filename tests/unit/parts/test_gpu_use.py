"""Which machines measure how busy GPUs are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pai_install.components.model import ComponentSet
from pai_install.parts.gpu_use import METRICS
from pai_install.parts.registry import make_context, part_named
from pai_install.site import Site
from tests.unit.parts.test_job_recorder import GROUPS, KUEUE
from tests.unit.plan.conftest import CONFIG


@pytest.mark.parametrize(
    ("services", "wanted"),
    [("", False), (GROUPS, False), (GROUPS + KUEUE, True), (f"{GROUPS}{KUEUE}jobs: {{keep-days: 0}}\n", True)],
)
def test_workers_with_nvidia_gpus_of_sites_with_jobs(
    make_site: Callable[..., Site], components: ComponentSet, services: str, wanted: bool
) -> None:
    site = make_site(config=CONFIG, services=services)
    context, part = make_context(site, components, Path("/s")), part_named("gpu_use")
    having = {it.hostname for it in site.present_machines if part.variables(context, it) is not None}
    gpus = {it.hostname for it in site.present_machines if it.worker and site.sku_of(it).has_nvidia}
    assert having == (gpus if wanted else set())
    for machine in site.present_machines:
        if machine.hostname in having:
            made = part.variables(context, machine)
            assert made is not None
            assert made.variables() == {
                "gpu_use_node_name": machine.hostname,
                "gpu_use_metrics": "",
                "gpu_use_expected": 0,
            }


def test_monitoring_measures_without_jobs(make_site: Callable[..., Site], components: ComponentSet) -> None:
    site = make_site(config=CONFIG, services="monitoring: true\n")
    context, part = make_context(site, components, Path("/s")), part_named("gpu_use")
    for machine in site.present_machines:
        made, gpus = part.variables(context, machine), site.sku_of(machine).resources.get("nvidia.com/gpu", 0)
        assert (made is not None) == (machine.worker and gpus > 0)
        if made is not None:
            assert (made.metrics, made.expected) == (METRICS, gpus)  # type: ignore[attr-defined]
