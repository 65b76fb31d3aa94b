"""The parts that a run is put together from; tests put in others."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pai_install.checks.finding import Finding
from pai_install.components.model import ComponentSet, Selection
from pai_install.components.source import Source
from pai_install.engine.base import Engine
from pai_install.plan.model import Inventory, Plan
from pai_install.preflight.report import PreflightReport
from pai_install.run.executor import Gate
from pai_install.run.state import RunFolder, StateFolder
from pai_install.site.load import LoadedSite, load_site
from pai_install.site.model import Site


class MakePlan(Protocol):
    """Compares what the inventory says with what was observed. Raises PaiError for an unknown phase name."""

    def __call__(
        self,
        site: Site,
        inventory: Inventory,
        observed: Mapping[str, Any],
        *,
        unreachable: Mapping[str, str] | None = None,
        phases: Collection[str] = (),
        limit: Collection[str] = (),
    ) -> Plan:
        """Gives the plan for the hosts in `observed`, narrowed to `phases` and `limit` where given."""
        ...


@dataclass(frozen=True, slots=True)
class Wiring:
    """One function for each thing that a run needs from another room.

    inventory: fetches the components that it names; its last argument takes lines of progress.
    stocked: whether it would find them all on this box.
    parse: the fact module's result -> what the planner compares. gates: phase name -> the look after it.
    newcomers: the machines that a plan would touch for the first time. preflight: judges those; its last argument
    are the checks that must not stop anything.
    judge: what the observation says of the cluster.
    engine: a context manager that holds the connections; its last argument is whether to accept new host keys.
    """

    load: Callable[[Path], LoadedSite]
    inventory: Callable[[Site, StateFolder, Callable[[str], None]], Inventory]
    stocked: Callable[[Site], bool]
    parse: Callable[[Mapping[str, Any]], Any]
    plan: MakePlan
    engine: Callable[[StateFolder, RunFolder, bool], AbstractContextManager[Engine]]
    gates: Callable[[Site, StateFolder, Engine], Mapping[str, Gate]]
    newcomers: Callable[[Plan, Mapping[str, Any]], tuple[str, ...]]
    preflight: Callable[[Engine, Site, tuple[str, ...], tuple[str, ...]], PreflightReport]
    judge: Callable[[Site, Inventory, Mapping[str, Any]], tuple[Finding, ...]]


def product_wiring() -> Wiring:
    """The real parts. Imports them only now: `--help` must not load Ansible."""
    from pai_install.plan.observed import parse_observed  # noqa: PLC0415
    from pai_install.plan.planner import make_plan, newcomers  # noqa: PLC0415

    return Wiring(
        load=load_site,
        inventory=site_inventory,
        stocked=_stocked,
        parse=parse_observed,
        plan=make_plan,
        engine=_ansible,
        gates=_health_at_the_end,
        newcomers=newcomers,
        preflight=_preflight,
        judge=_standing,
    )


def site_inventory(site: Site, state: StateFolder, say: Callable[[str], None]) -> Inventory:
    """The site's inventory, its components fetched where they are not in the cache yet.

    Raises PaiError when a component cannot be had.
    """
    from pai_install.engine.content import content_dir, role_digests  # noqa: PLC0415
    from pai_install.plan.desired import Desired  # noqa: PLC0415
    from pai_install.plan.inventory import build_inventory, connection  # noqa: PLC0415

    for machine in site.present_machines:
        connection(machine)  # a password that cannot be had is told before anything is fetched
    return build_inventory(Desired(site, site_components(site, say), state.path), role_digests(content_dir()))


def site_components(site: Site, say: Callable[[str], None]) -> ComponentSet:
    """Everything the site's machines are made of, verified; fetched where it is not in the cache yet.

    Raises PaiError when a component cannot be had.
    """
    from pai_install.components.fetch import fetch  # noqa: PLC0415

    selection, source = _choice(site)
    return fetch(selection, source, progress=say)


def without_components(wiring: Wiring) -> Wiring:
    """The same for looking only: nothing is fetched, and nothing compared with what the components would be."""
    return replace(wiring, inventory=_machines_alone, plan=_nothing_compared)


def _machines_alone(site: Site, state: StateFolder, say: Callable[[str], None]) -> Inventory:
    from pai_install.plan.inventory import connection, groups  # noqa: PLC0415

    del state, say
    version = {"control_plane_version": _choice(site)[0].kubernetes_version}
    return Inventory(
        groups(site), version, {machine.hostname: connection(machine) for machine in site.present_machines}
    )


def _nothing_compared(
    site: Site,
    inventory: Inventory,
    observed: Mapping[str, Any],
    *,
    unreachable: Mapping[str, str] | None = None,
    phases: Collection[str] = (),
    limit: Collection[str] = (),
) -> Plan:
    del site, observed, phases, limit
    return Plan((), inventory, dict(unreachable or {}))


def _stocked(site: Site) -> bool:
    from pai_install.components.fetch import cached  # noqa: PLC0415

    return all(cached(*_choice(site)).values())


def component_requirements(site: Site) -> tuple[str, ...]:
    """Debian packages that this box lacks to fetch what is not in the cache yet."""
    from pai_install.components.fetch import requirements  # noqa: PLC0415

    return requirements(*_choice(site))


def _choice(site: Site) -> tuple[Selection, Source]:
    from pai_install.components.catalogue import load_catalogue  # noqa: PLC0415
    from pai_install.components.choose import choose  # noqa: PLC0415

    settings = site.settings
    return choose(
        load_catalogue(),
        settings.component_source,
        settings.kubernetes_version,
        mirror_url=settings.component_mirror_url or "",
        bundle=settings.component_bundle,
    )


@contextmanager
def _ansible(state: StateFolder, run: RunFolder, accept_new: bool) -> Iterator[Engine]:  # noqa: FBT001
    from pai_install.engine.content import content_dir  # noqa: PLC0415
    from pai_install.engine.runner import RunnerEngine  # noqa: PLC0415

    engine = RunnerEngine(content_dir(), state.work, state.known_hosts, log=run.log, accept_new_host_keys=accept_new)
    with run.in_use(), engine:
        yield engine


def _health_at_the_end(site: Site, state: StateFolder, engine: Engine) -> Mapping[str, Gate]:
    from pai_install.health.gate import health_gate  # noqa: PLC0415
    from pai_install.plan.phases import VERIFY  # noqa: PLC0415

    return {VERIFY.name: Gate("health", "Check the health of the machines", health_gate(site, state.health, engine))}


def _preflight(engine: Engine, site: Site, hosts: tuple[str, ...], forced: tuple[str, ...]) -> PreflightReport:
    from pai_install.preflight.run import run  # noqa: PLC0415

    return run(engine, site, hosts=hosts, forced=forced)


def _standing(site: Site, inventory: Inventory, observed: Mapping[str, Any]) -> tuple[Finding, ...]:
    from pai_install.cluster.conditions import cluster_findings  # noqa: PLC0415

    first = inventory.host_vars[site.control_planes[0].hostname]
    version = {**inventory.shared_vars, **first}["control_plane_version"]
    return cluster_findings(site, version, observed, now=time.time())
