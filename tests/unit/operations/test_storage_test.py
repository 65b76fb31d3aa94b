"""Which storages are tried where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.storage_test import StorageTest
from pai_install.plan.model import Inventory, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.site import Site, load_site
from tests.errors import raises
from tests.unit.site.sites import write_site

NOTHING = Observation(Inventory({}, {}, {}), {})
SERVICES = """\
storages:
  - {name: data, type: nfs, server: nas, path: /data}
  - {name: papers, type: nfs, server: nas, path: /papers, read-only: true}
  - {name: disk, type: local, path: /disk, machine: w1}
  - {name: idle, type: nfs, server: nas, path: /idle}
authentication:
  group-manager:
    grouplist:
      - {groupname: vision, extension: {acls: {storageConfigs: [data, disk]}}}
      - {groupname: Speech_1, extension: {acls: {storageConfigs: [papers, data]}}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return load_site(write_site(tmp_path, services=SERVICES)).site


def step_of(site: Site, **words: Any) -> Step:
    (step,) = StorageTest(**words).plan(site, NOTHING).steps
    return step


def variables(site: Site, **words: Any) -> dict[str, Any]:
    action = step_of(site, **words).action
    assert isinstance(action, Playbook)
    assert action.playbook == "storage-test.yml"
    return dict(action.variables)


def test_a_control_plane_tries_each_granted_storage_once_on_every_worker(site: Site) -> None:
    step = step_of(site)
    assert step.names == (site.control_planes[0].hostname,)
    assert step.looks
    assert variables(site) == {
        "storage_grants": [
            {"storage": "data", "namespace": "vision", "claim": "data", "read_only": False, "machine": ""},
            {"storage": "disk", "namespace": "vision", "claim": "disk", "read_only": False, "machine": "w1"},
            {"storage": "papers", "namespace": "speech-1", "claim": "papers", "read_only": True, "machine": ""},
        ],
        "storage_workers": [machine.hostname for machine in site.present_machines if machine.worker],
        "storage_mib": 16,
        "storage_timeout": 150,
    }


def test_storages_and_workers_can_be_named(site: Site) -> None:
    given = variables(site, storages=("data",), limit=("w1",), all_grants=True, size_mib=2, timeout_s=60)
    assert [(one["storage"], one["namespace"]) for one in given["storage_grants"]] == [
        ("data", "vision"),
        ("data", "speech-1"),
    ]
    assert (given["storage_workers"], given["storage_mib"], given["storage_timeout"]) == (["w1"], 2, 60)


def test_a_storage_that_no_group_may_mount_is_told(site: Site, snapshot: SnapshotAssertion) -> None:
    operation = StorageTest()
    (found,) = operation.known(site, NOTHING, operation.plan(site, NOTHING))
    assert (found.verdict, found.message) == snapshot
    assert StorageTest(storages=("data",)).known(site, NOTHING, operation.plan(site, NOTHING)) == ()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"storages": ("dato",)}, "not a storage of this site: dato"),
        ({"storages": ("by-hand",)}, "not a storage of this site: by-hand"),
        ({"storages": ("idle",)}, "no group may mount idle"),
        ({"limit": ("none",)}, "not a present machine"),
        ({"limit": ("m1",)}, "not a worker: m1"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_a_machine_is_asked(site: Site, words: Any, message: str) -> None:
    StorageTest().require(site)
    with pytest.raises(PaiError, match=message) as caught:
        StorageTest(**words).require(site)
    assert caught.value.exit_code == ExitCode.USAGE
    assert caught.value.remedy


def test_a_site_without_storages_is_told(tmp_path: Path) -> None:
    with raises("site-without-storages"):
        StorageTest().require(load_site(write_site(tmp_path)).site)


def test_nothing_granted_is_nothing_to_do(tmp_path: Path) -> None:
    services = "storages: [{name: idle, type: nfs, server: nas, path: /idle}]\n"
    site = load_site(write_site(tmp_path, services=services)).site
    StorageTest().require(site)
    assert StorageTest().plan(site, NOTHING).steps == ()


@pytest.mark.parametrize("words", [{"size_mib": 0}, {"size_mib": 25}, {"timeout_s": 5}])
def test_size_and_time_are_bounded(words: Any) -> None:
    with pytest.raises(ValidationError):
        StorageTest(**words)
