"""Fixtures of this room."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pai_install.operations.install import Install
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from tests.unit.cli.stub_environment import World, enter, leave


@pytest.fixture
def in_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[World], World]]:
    """Puts the following command lines into a world; `apply` plans what that says."""

    def put(world: World) -> World:
        def plan(self: Install, site: Site, observation: Observation) -> Plan:
            del site
            return world.install_plan(self, observation)

        monkeypatch.setattr(Install, "plan", plan)
        monkeypatch.setattr("pai_install.operations.install.cluster_findings", lambda *_, **__: world.findings)
        return enter(world)

    yield put
    leave()
