"""What a switch of schedulers plans, and when an installation tests its scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.components.model import ComponentSet
from pai_install.errors import ExitCode
from pai_install.operations.install import Install
from pai_install.operations.scheduler_switch import SchedulerSwitch
from pai_install.operations.storage_rotate import StorageRotate
from pai_install.operations.verify import Verify
from pai_install.parts.registry import make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import LocalWork, Plan
from pai_install.plan.observation import Observation
from pai_install.plan.observed import RoleRecord
from pai_install.plan.scheduler_change import installed_schedulers
from pai_install.schedulers.job_inventory import BlockingJob
from pai_install.site import Site
from tests.errors import raises
from tests.unit.plan.conftest import ROLES, converged

MakeSite = Callable[..., Site]


@pytest.fixture
def seen(make_site: MakeSite, components: ComponentSet) -> Callable[[str], tuple[Site, Observation]]:
    """A site with that scheduler, and its machines as it says."""

    def of(scheduler: str) -> tuple[Site, Observation]:
        site = make_site(services=f"scheduler: {{type: {scheduler}}}\n")
        context = make_context(site, components, site.directory / ".pai")
        inventory = build_inventory(context, dict.fromkeys(ROLES, "1"))
        return site, Observation(inventory, converged(inventory))

    return of


@pytest.fixture
def moving(seen: Callable[[str], tuple[Site, Observation]]) -> tuple[Site, Observation]:
    """A site that says volcano; its machines have kueue."""
    _site, before = seen("kueue")
    site, after = seen("volcano")
    return site, replace(after, machines=before.machines)


def names(plan: Plan) -> list[str]:
    return [step.name for step in plan.steps]


def test_jobs_end_first_then_all_of_an_installation_and_the_test(
    moving: tuple[Site, Observation], snapshot: SnapshotAssertion
) -> None:
    site, observation = moving
    switch = SchedulerSwitch(to="volcano", before="kueue", edits=True)
    plan = switch.plan(site, observation)
    assert names(plan) == [
        *("scheduler-switch", "runtime", "labels", "addons"),
        *("verify", "health", "scheduler-test"),
    ]
    first, *_others, addons, _verify, _health, test = plan.steps
    (host,) = first.hosts
    assert host.reasons == snapshot
    assert host.effects == ()
    wanted = {"before": "kueue", "to": "volcano", "force": False, "edits": True, "devices": ["nvidia.com/gpu"]}
    assert first.action == LocalWork("scheduler-switch", wanted)
    (host,) = addons.hosts
    assert {"addon.volcano is not installed", "the site no longer asks for addon.kueue"} <= set(host.reasons)
    assert isinstance(test.action, LocalWork)
    assert test.action.arguments["backend"] == "volcano"
    assert test.action.arguments["workers"] == ["worker1", "worker2"]
    assert (test.proves, test.needs) == (True, ("verify",))
    assert switch.question(plan, ()) == snapshot


RUNS = BlockingJob("Job", "batch", "team", "a", "runs")
ENDED = BlockingJob("Job", "batch", "team", "b", "has ended")


def test_installation_knows_jobs_of_the_scheduler_that_goes(moving: tuple[Site, Observation]) -> None:
    site, observation = moving
    assert Install().replaced_scheduler(site, observation) == "kueue"
    with raises("scheduler-jobs-running") as caught:
        Install().plan(site, replace(observation, kept_jobs=(ENDED, RUNS)))
    assert caught.value.exit_code == ExitCode.PREFLIGHT_FAILED
    assert caught.value.details == str(RUNS)
    assert "scheduler switch" in str(caught.value.remedy)


def test_installation_ends_what_is_left_of_finished_jobs_first(moving: tuple[Site, Observation]) -> None:
    site, observation = moving
    first, *others = Install().plan(site, replace(observation, kept_jobs=(ENDED,))).steps
    assert isinstance(first.action, LocalWork)
    assert (first.name, first.action.arguments["force"], first.action.arguments["edits"]) == (
        *("scheduler-switch", False),
        False,
    )
    assert "addons" in [step.name for step in others]
    assert "scheduler-switch" not in names(Install().plan(site, observation))


@pytest.mark.parametrize("options", [{"phases": ("time",)}, {"limit": ("worker1",)}])
def test_installation_without_add_ons_replaces_no_scheduler(
    moving: tuple[Site, Observation], options: dict[str, Any]
) -> None:
    assert Install(**options).replaced_scheduler(*moving) is None


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ((), ()),
        (("addon.kueue", "addon.jobset", "addon.virtual_clusters"), ("kueue",)),
        (("addon.jobset", "addon.virtual_clusters"), ("default",)),
        (("addon.kueue", "addon.volcano"), ("kueue", "volcano")),
    ],
)
def test_schedulers_of_a_cluster_are_known_by_their_records(records: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert installed_schedulers(records) == found


def test_force_says_what_it_does(moving: tuple[Site, Observation], snapshot: SnapshotAssertion) -> None:
    switch = SchedulerSwitch(to="volcano", before="kueue", edits=True, force=True)
    plan = switch.plan(*moving)
    assert plan.steps[0].hosts[0].effects == snapshot
    assert switch.question(plan, ()) == snapshot


def test_an_interrupted_switch_goes_on_where_it_was(
    moving: tuple[Site, Observation], seen: Callable[[str], tuple[Site, Observation]]
) -> None:
    site, observation = moving
    plan = SchedulerSwitch(to="volcano", before="kueue", edits=False).plan(site, observation)
    assert names(plan)[0] == "scheduler-switch", "the cluster still has kueue, whatever the file says"
    site, observation = seen("volcano")
    assert SchedulerSwitch(to="volcano", before="volcano", edits=False).plan(site, observation).empty
    plan = SchedulerSwitch(to="volcano", before="volcano", edits=True).plan(site, observation)
    assert names(plan) == ["scheduler-switch"], "a choice in the file that never reached the cluster"


def test_without_the_first_control_plane_nothing_begins(moving: tuple[Site, Observation]) -> None:
    site, observation = moving
    machines = {name: it for name, it in observation.machines.items() if name != "master"}
    with raises("leader-unreachable") as caught:
        SchedulerSwitch(to="volcano", before="kueue", edits=True).plan(site, replace(observation, machines=machines))
    assert caught.value.exit_code == ExitCode.UNREACHABLE


@pytest.mark.parametrize(
    ("scheduler", "addon"), [("kueue", "jobset"), ("volcano", "volcano"), ("default", "virtual_clusters")]
)
def test_an_installation_tests_its_scheduler_at_the_end(
    seen: Callable[[str], tuple[Site, Observation]], scheduler: str, addon: str, snapshot: SnapshotAssertion
) -> None:
    site, observation = seen(scheduler)
    master = observation.machines["master"]
    roles = {name: it for name, it in master.roles.items() if name != f"addon.{addon}"}
    machines = {**observation.machines, "master": master.model_copy(update={"roles": roles})}
    plan = Install().plan(site, replace(observation, machines=machines))
    assert names(plan)[-1] == "scheduler-test"
    assert plan.steps[-1].hosts[0].reasons == snapshot
    assert "scheduler-test" not in names(Install(verify=False).plan(site, replace(observation, machines=machines)))
    limited = Install(limit=("worker1",)).plan(site, replace(observation, machines=machines))
    assert "scheduler-test" not in names(limited)


def test_what_was_left_untested_is_tested_by_the_next_proof(
    seen: Callable[[str], tuple[Site, Observation]],
) -> None:
    site, observation = seen("kueue")
    left = replace(observation, unproven={"master": "run 1 was interrupted while it changed the machine"})
    for operation in (Install(), Verify()):
        plan = operation.plan(site, left)
        assert names(plan) == ["verify", "health", "scheduler-test"]
        assert plan.steps[-1].hosts[0].reasons == ("not proven: run 1 was interrupted while it changed the machine",)
    assert names(Verify().plan(site, observation)) == ["verify", "health"]
    assert names(Verify(limit=("worker1",)).plan(site, left)) == ["verify", "health"]
    assert "scheduler-test" not in names(StorageRotate(storage="data", final=True).plan(site, left))


def test_other_changes_and_other_sites_test_no_scheduler(
    site: Site, seen: Callable[[str], tuple[Site, Observation]]
) -> None:
    other, observation = seen("kueue")
    master = observation.machines["master"]
    changed = RoleRecord(settings={"objects": "others"})
    machines = {
        **observation.machines,
        "master": master.model_copy(update={"roles": {**master.roles, "addon.virtual_clusters": changed}}),
    }
    assert names(Install().plan(other, replace(observation, machines=machines)))[-1] == "health"
    left = replace(observation, unproven={"master": "run 1 found dns failed"})
    assert site.services.scheduler is None
    assert names(Verify().plan(site, left)) == ["verify", "health"]
