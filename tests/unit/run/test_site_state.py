"""The controller host's own knowledge, kept in the cluster and taken over from there."""

from __future__ import annotations

import base64
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.client import NoClusterError
from pai_install.errors import ExitCode
from pai_install.plan.model import Inventory
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.run.site_state import SECRET, keep_state, take_over
from pai_install.run.state import StateFolder
from pai_install.site.load import load_site
from pai_install.site.model import Site
from tests.errors import raises
from tests.unit.cli.stub_environment import write_site
from tests.unit.cluster.fake import FakeCluster

JOINED = Membership(control_plane=True, node=True, joined=True)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return load_site(write_site(tmp_path / "cluster")).site


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    (tmp_path / "state").mkdir()
    return StateFolder(tmp_path / "state")


def seen(**machines: Observed) -> Observation:
    return Observation(Inventory({}, {}, {}), machines)


def kept(cluster: FakeCluster) -> dict[str, Any]:
    (found,) = cluster.get([SECRET])
    assert found is not None
    return dict(found["data"])


def silent(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    def get(_refs: Any) -> Any:
        raise NoClusterError({"master": "timed out"})

    monkeypatch.setattr(cluster, "get", get)
    return cluster


def test_it_goes_there_and_back(site: Site, state: StateFolder, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster()
    state.registry.write_text('{"a": 1}')
    (state.path / "storages.json").write_text("{}")
    (state.path / "journal.jsonl").write_text("not this")
    assert keep_state(state, cluster) == ()
    assert kept(cluster) == {
        "registry.json": base64.b64encode(b'{"a": 1}').decode(),
        "storages.json": base64.b64encode(b"{}").decode(),
    }
    said: list[str] = []
    new = StateFolder(tmp_path / "new")
    assert take_over(site, seen(master=Observed(hostname="master", kubernetes=JOINED)), new, cluster, said.append)
    assert new.registry.read_text() == '{"a": 1}'
    assert stat.S_IMODE(new.registry.stat().st_mode) == 0o600
    assert said == snapshot


def test_the_same_is_not_written_again(state: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()
    state.registry.write_text("{}")
    keep_state(state, cluster)
    monkeypatch.setattr(cluster, "apply", lambda *_, **__: pytest.fail("applied again"))
    assert keep_state(state, cluster) == ()


def test_a_site_without_an_identity_keeps_nothing(state: StateFolder) -> None:
    cluster = FakeCluster()
    assert keep_state(state, cluster) == ()
    assert cluster.get([SECRET]) == (None,)


def test_a_cluster_that_does_not_answer_is_a_warning(state: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    state.registry.write_text("{}")
    (found,) = keep_state(state, silent(FakeCluster(), monkeypatch))
    assert (found.id, found.verdict) == ("site-state", "WARN")


def test_a_dev_box_that_knows_the_site_asks_nothing(
    site: Site, state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.registry.write_text("{}")
    cluster = silent(FakeCluster(), monkeypatch)
    machines = seen(master=Observed(hostname="master", kubernetes=JOINED))
    assert not take_over(site, machines, state, cluster, pytest.fail)


@pytest.mark.parametrize(
    "machines",
    [
        {},
        {"master": Observed(hostname="master"), "one": Observed(hostname="one")},
        {"one": Observed(hostname="one")},
        # an installation that did not get that far
        {"master": Observed(hostname="master", roles={"base": RoleRecord()})},
    ],
)
def test_a_new_site_has_nothing_to_take_over(
    site: Site, state: StateFolder, machines: dict[str, Observed], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not take_over(site, seen(**machines), state, silent(FakeCluster(), monkeypatch), pytest.fail)


def test_where_there_may_be_a_cluster_no_other_authority_is_made(
    site: Site, state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = silent(FakeCluster(), monkeypatch)
    for machines in (
        {"one": Observed(hostname="one", roles={"base": RoleRecord()})},
        {"master": Observed(hostname="master", kubernetes=JOINED)},
    ):
        with raises("site-authority-unknown") as caught:
            take_over(site, seen(**machines), state, cluster, pytest.fail)
        assert caught.value.exit_code == ExitCode.UNREACHABLE
    assert not state.registry.exists()


def test_a_cluster_of_before_has_no_copy_and_that_is_said(
    site: Site, state: StateFolder, snapshot: SnapshotAssertion
) -> None:
    said: list[str] = []
    machines = seen(master=Observed(hostname="master", kubernetes=JOINED))
    assert not take_over(site, machines, state, FakeCluster(), said.append)
    assert said[0] == snapshot


@pytest.mark.parametrize("data", [{"registry.json": "%%"}, {"registry.json": base64.b64encode(b"\xff").decode()}])
def test_a_damaged_copy_is_refused(
    site: Site,
    state: StateFolder,
    data: dict[str, str],
    keeping: Callable[[dict[str, str]], FakeCluster],
    snapshot: SnapshotAssertion,
) -> None:
    machines = seen(master=Observed(hostname="master", kubernetes=JOINED))
    with raises("site-authority-unknown") as caught:
        take_over(site, machines, state, keeping(data), pytest.fail)
    assert caught.value.details == snapshot


@pytest.fixture
def keeping() -> Callable[[dict[str, str]], FakeCluster]:
    """A cluster that keeps such a copy."""

    def make(data: dict[str, str]) -> FakeCluster:
        cluster = FakeCluster()
        metadata = {"name": SECRET.name, "namespace": SECRET.namespace}
        cluster.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}], force=True)
        return cluster

    return make
