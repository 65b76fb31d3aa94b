"""What a stage of a storage's rotation brings to the cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.operations.storage_rotate import StorageRotate, StorageTry
from pai_install.plan.model import HostStep, Inventory, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Observed
from pai_install.site import Site, load_site
from pai_install.storage.compile import grants_of
from tests.unit.operations.test_storage_test import NOTHING, SERVICES
from tests.unit.site.sites import write_site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return load_site(write_site(tmp_path, services=SERVICES)).site


def observed(site: Site, **more: Any) -> Observation:
    leader = site.control_planes[0].hostname
    return Observation(Inventory({}, {}, {}), {leader: Observed(hostname=leader)}, **more)


def planned(site: Site, monkeypatch: pytest.MonkeyPatch, observation: Observation, **words: Any) -> list[str]:
    """The steps, where phases `runtime` and `addons` have work."""
    leader = site.control_planes[0].hostname
    steps = tuple(
        Step(name, name, (HostStep(leader, ("changed",)),), Playbook(f"{name}.yml")) for name in ("runtime", "addons")
    )
    plan = Plan(steps if not words.pop("done", False) else (), observation.inventory, leader=leader)
    monkeypatch.setattr("pai_install.operations.storage_rotate.make_plan", lambda *_words, **_more: plan)
    return [step.name for step in StorageRotate(storage="data", **words).plan(site, observation).steps]


def test_a_stage_is_the_add_ons_alone_and_the_last_one_is_proven(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = observed(site)
    assert planned(site, monkeypatch, seen) == ["addons"]
    assert planned(site, monkeypatch, seen, final=True) == ["addons", "verify", "health"]
    assert planned(site, monkeypatch, seen, final=True, done=True) == []
    unproven = observed(site, unproven={site.control_planes[0].hostname: "it was interrupted"})
    assert planned(site, monkeypatch, unproven, final=True, done=True) == ["verify", "health"]


def test_every_worker_tries_a_new_place_and_no_secret_is_in_the_plan(site: Site) -> None:
    grant = replace(grants_of(site)[0], prefix="pai-try-")
    operation = StorageTry(grants=(grant,))
    assert operation.arguments == {}
    (step,) = operation.plan(site, NOTHING).steps
    assert isinstance(step.action, Playbook)
    assert step.action.variables["storage_grants"] == [
        {"storage": "data", "namespace": "vision", "claim": "pai-try-data", "read_only": False, "machine": ""}
    ]
    assert step.action.variables["storage_workers"] == [machine.hostname for machine in site.workers]
