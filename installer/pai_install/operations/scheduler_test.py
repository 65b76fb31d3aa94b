"""Verifies the scheduler's guarantees in the cluster: small jobs in queues of the test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pai_install.cluster.client import Select
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Node
from pai_install.kube.schedulable import takers_of
from pai_install.operations.operation import Operation
from pai_install.plan.leader import leader_of
from pai_install.plan.model import HostStep, LocalWork, Plan, Step
from pai_install.plan.observation import Observation
from pai_install.schedulers.kueue.self_test import CONTROLLERS, pods_ready_s
from pai_install.schedulers.last_applied import kept_object
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.scenarios import QUICK, Bounds
from pai_install.scheduling.model import Backend
from pai_install.scheduling.read import scheduling_of
from pai_install.site.model import Site
from pai_install.site.schedulers import scheduler_of
from pai_install.system.parameters import Parameter

STEP = "scheduler-test"
# what is left of the wait for pods that are told to end when the scheduler's own time is over
_MARGIN_S = 30.0


class SchedulerTest(Operation):
    """Gangs, quota, lending, reclaim, priority: the guarantees for users, from the view of jobs."""

    name: ClassVar[str] = "scheduler test"
    summary: ClassVar[str] = "Test the guarantees of the scheduler with small jobs."
    configures: ClassVar[bool] = True  # the image of the pods is known with the site's components
    backend: Annotated[Backend | None, Parameter(default="the site's")] = Field(None, description="Scheduler to test.")
    disruptive: bool = Field(default=False, description="Also stop the scheduler briefly. New jobs wait.")
    back_s: Annotated[int, Parameter("--back", "SECONDS")] = Field(
        30, ge=5, le=600, description="Time in which an owner must reclaim lent quota."
    )
    wait_s: Annotated[int, Parameter("--wait", "SECONDS")] = Field(
        90, ge=30, le=3600, description="Timeout of each step."
    )

    def require(self, site: Site) -> None:
        """The site must have chosen a scheduler, or one is named."""
        if self._backend(site) is None:
            raise PaiError(
                "cannot test the scheduler: this site has none",
                code="scheduler-not-configured",
                remedy="add the section scheduler to services-configuration.yaml, or add --backend",
                exit_code=ExitCode.USAGE,
            )
        if self.backend and not _knows_devices(self.backend) and scheduler_of(site) != self.backend:
            raise PaiError(
                "cannot test HiveD: it needs its own virtual clusters, and this site has another scheduler",
                code="scheduler-test-virtual-clusters-without-hived",
                remedy="remove --backend, or name another backend",
                exit_code=ExitCode.USAGE,
            )

    def watched(self, site: Site) -> tuple[str, ...]:
        """The control planes: one of them is asked."""
        return tuple(machine.hostname for machine in site.control_planes)

    @property
    def queries(self) -> tuple[Select, ...]:
        """Nodes, and the settings of Kueue where that is installed."""
        return (Select(("nodes",)), Select(("configmaps",), CONTROLLERS[0]))

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step. Raises PaiError where no worker takes pods."""
        nodes, settings = observation.answers
        machines = takers(site, nodes)
        if not machines:
            raise PaiError(
                "cannot test the scheduler: no worker is ready and schedulable",
                code="no-ready-worker",
                remedy="find the cause with pai-install status, and run pai-install node uncordon",
                exit_code=ExitCode.VERIFICATION_FAILED,
            )
        backend = self._backend(site)
        assert backend is not None  # noqa: S101 - `require` has asked
        # Kueue requeues a gang whose pods are not ready in time. The test waits for this only if the time is short.
        requeue_s = pods_ready_s(settings) + _MARGIN_S
        bounds = Bounds(
            start_s=min(60.0, self.wait_s),
            back_s=self.back_s,
            requeue_s=requeue_s if _MARGIN_S < requeue_s <= self.wait_s else 0.0,
        )
        return self_test(site, observation, backend, machines, bounds, disruptive=self.disruptive)

    def _backend(self, site: Site) -> Backend | None:
        return self.backend or scheduler_of(site)


def self_test(
    site: Site,
    observation: Observation,
    backend: Backend,
    machines: tuple[Node, ...],
    bounds: Bounds,
    *,
    disruptive: bool = False,
) -> Plan:
    """Returns the plan of the test on those machines, without steps if there are none."""
    leader, inventory = leader_of(site, observation.machines), observation.inventory
    names = [node.name for node in machines]
    arguments = {
        "backend": backend,
        "image": str(inventory.variables_of(leader).get("cluster_verify_image", "")),  # all machines hold it
        "machines": names,
        "groups": backend_of(backend).self_test.node_groups(node.labels for node in machines),
        "disruptive": disruptive,
        "bounds": {"start_s": bounds.start_s, "back_s": bounds.back_s, "requeue_s": bounds.requeue_s},
        **_kept(site, backend),
    }
    where = f"on {' and '.join(names)}" if _knows_devices(backend) else "in an idle virtual cluster"
    effects = ("no job that asks for quota starts for about a minute",) if disruptive else ()
    host = HostStep(leader, (f"asked for; pods run {where}",), effects)
    title = f"Test the scheduler ({backend})"
    step = Step(STEP, title, (host,), LocalWork(STEP, arguments), looks=True)
    return Plan((step,) if machines else (), inventory, observation.unreachable, leader)


def _knows_devices(backend: Backend) -> bool:
    """Whether the test has devices of its own, on any worker."""
    return backend_of(backend).self_test.knows_devices


def _kept(site: Site, backend: Backend | None) -> Mapping[str, Any]:
    """HiveD is tried in the site's own virtual clusters, and has to be told them."""
    scheduling = None if backend is None or _knows_devices(backend) else scheduling_of(site)
    return {} if scheduling is None else {"kept": kept_object(scheduling)}


def takers(site: Site, nodes: Iterable[Mapping[str, Any]]) -> tuple[Node, ...]:
    """The first workers that take pods."""
    return takers_of(_workers(site), nodes)


def _workers(site: Site) -> list[str]:
    return [machine.hostname for machine in site.present_machines if machine.worker]


def quick_test(
    site: Site,
    observation: Observation,
    reason: str,
    needs: tuple[str, ...],
    *,
    scenarios: tuple[str, ...] = QUICK,
    proven: tuple[str, ...] = (),
    waits: bool = True,
) -> tuple[Step, ...]:
    """Returns the scheduler's verification at the end of an installation, or () without a scheduler.

    The cluster may not exist during planning, so the step selects the schedulable workers at its start.
    scenarios: of the self-test. proven: machines that it verifies, empty for the first control plane. waits: until
    the objects of the test are deleted.
    """
    backend, leader = scheduler_of(site), site.control_planes[0].hostname
    if backend is None:
        return ()
    bounds = Bounds()
    arguments = {
        "backend": backend,
        "image": str(observation.inventory.variables_of(leader).get("cluster_verify_image", "")),
        "workers": _workers(site),
        "scenarios": list(scenarios),
        "waits": waits,
        "bounds": {"start_s": bounds.start_s, "back_s": bounds.back_s, "requeue_s": bounds.requeue_s},
        **_kept(site, backend),
    }
    hosts = tuple(HostStep(name, (reason,)) for name in proven or (leader,))
    return (Step(STEP, f"Test the scheduler ({backend})", hosts, LocalWork(STEP, arguments), needs, proves=True),)
