"""Virtual clusters follow the machines: the step that updates the scheduler's capacity. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pai_install.plan.addons import addons_of_scheduler, steps_of_addons, work_of_addons
from pai_install.plan.model import Step
from pai_install.plan.observation import Observation
from pai_install.plan.planner import make_plan
from pai_install.scheduling.amounts import unassigned
from pai_install.scheduling.block_workers import job_workers
from pai_install.scheduling.read import scheduling_of
from pai_install.site.model import Site

NAME = "capacity"


def capacity_steps(site: Site, observation: Observation) -> Iterator[Step]:
    """Yields the step, or nothing without virtual clusters or if the scheduler is up to date.

    observation: includes the first control-plane node, which applies the add-ons.
    """
    scheduling, leader = scheduling_of(site), site.control_planes[0].hostname
    seen = observation.machines.get(leader)
    if scheduling is None or seen is None or not seen.kubernetes.joined:
        return
    addons = addons_of_scheduler(scheduling.backend)
    work = work_of_addons(observation.inventory.settings_of(leader), seen)
    plan = make_plan(site, observation.inventory, {leader: seen}, limit=(leader,))
    for step in steps_of_addons(plan.steps, addons, work):
        yield replace(step, name=NAME, title="Tell the scheduler which machines there are", needs=())


def spare_capacity(site: Site, names: tuple[str, ...]) -> Iterator[str]:
    """Yields a sentence for each machine type of these machines with capacity outside the virtual clusters'
    guarantees.
    """
    scheduling = scheduling_of(site)
    if scheduling is None:
        return
    for sku, workers in job_workers(site).items():
        left = unassigned(scheduling, sku).units if set(names) & set(workers.present) else 0
        if left:
            yield f"{left} {workers.unit} of {sku} are guaranteed to no virtual cluster"
