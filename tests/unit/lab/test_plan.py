"""The record before anything is made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.lab import names, plan
from pai_install.lab.cgroups import Hierarchy
from pai_install.lab.names import lab_names
from pai_install.lab.plan import open_ledger, planned_resources
from pai_install.lab.record import Kind, Resource, read_record
from pai_install.lab.spec import LabSpec
from tests.errors import raises

TREES = (Hierarchy(Path("/sys/fs/cgroup/memory"), unified=False),)


@pytest.fixture(autouse=True)
def empty_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "LABS_DIR", tmp_path / "labs")
    monkeypatch.setattr(plan, "box_hierarchies", lambda: TREES)
    monkeypatch.setattr(plan, "exists", lambda _resource: False)


def test_everything_with_a_known_name_is_planned(spec: LabSpec) -> None:
    planned = planned_resources(spec, TREES)
    found = {(resource.kind, resource.name) for resource in planned}
    folder = lab_names(spec).folder
    assert {
        (Kind.FOLDER, str(folder)),
        (Kind.BRIDGE, "pb-ac1e4f00"),
        (Kind.NFT_TABLE, "pai_lab_ac1e4f00"),
        (Kind.CGROUP, "/sys/fs/cgroup/memory/pai-lab-172-30-79-0"),
        (Kind.VETH, "pv-ac1e4f0b"),
        (Kind.VETH, "pv-ac1e4f0c"),
        (Kind.NETNS, "pai-172.30.79.12"),
        (Kind.MOUNT, str(folder / "two/root")),
        (Kind.MOUNT, str(folder / "two/disk")),
        (Kind.KNOWN_HOSTS, str(spec.known_hosts)),
    } <= found
    assert len(found) == len(planned)


def test_a_key_pair_that_the_user_brought_is_never_planned(spec: LabSpec) -> None:
    assert not [one for one in planned_resources(spec, TREES) if one.kind is Kind.KEY_PAIR]


def test_the_plan_is_on_disk_before_anything_is_made(spec: LabSpec) -> None:
    open_ledger(spec)
    record = read_record(lab_names(spec).record)
    assert record is not None
    assert record.resources == planned_resources(spec, TREES)
    assert record.site == str(spec.state_dir)


def test_opening_again_keeps_what_was_added_since(spec: LabSpec) -> None:
    open_ledger(spec).add([Resource(Kind.PROCESS, "one", "1:2")])
    assert open_ledger(spec).record.of(Kind.PROCESS) == (Resource(Kind.PROCESS, "one", "1:2"),)


def test_a_machine_that_left_the_site_stays_in_the_record(spec: LabSpec) -> None:
    open_ledger(spec)
    record = open_ledger(replace(spec, machines=spec.machines[:1])).record
    assert "pv-ac1e4f0c" in {resource.name for resource in record.of(Kind.VETH)}


def test_another_sites_subnet_is_refused(spec: LabSpec) -> None:
    open_ledger(spec)
    with raises("lab-subnet-of-deleted-site", "172.30.79.0/24"):
        open_ledger(replace(spec, state_dir=spec.state_dir / "other"))


def test_the_subnet_of_a_site_that_is_gone_is_refused_with_the_way_out(
    spec: LabSpec, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    open_ledger(replace(spec, state_dir=tmp_path / "gone" / ".pai"))
    with raises("lab-subnet-of-deleted-site") as refused:
        open_ledger(spec)
    assert refused.value.remedy == snapshot


def test_names_that_somebody_else_uses_are_refused_and_nothing_is_written(
    spec: LabSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "exists", lambda resource: resource.kind is Kind.BRIDGE)
    with raises("lab-names-taken", "pb-ac1e4f00"):
        open_ledger(spec)
    assert not lab_names(spec).folder.exists()


def test_names_in_the_record_are_the_labs_own(spec: LabSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ledger(spec)
    monkeypatch.setattr(plan, "exists", lambda _resource: True)
    assert open_ledger(spec).record.of(Kind.BRIDGE)
