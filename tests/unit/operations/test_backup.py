"""What a backup and a restoration plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.operations.backup import Backup
from pai_install.operations.restore import Restore
from pai_install.plan.model import Inventory, LocalWork, Plan, Playbook
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Membership, Observed
from pai_install.site import Site
from tests.errors import raises
from tests.unit.operations.test_certs_renew import THREE
from tests.unit.plan.conftest import converged

SPACE = {"metadata": {"name": "kube-system", "uid": "c-1"}}
JOINED = Membership(control_plane=True, node=True, joined=True)


def seen(site: Site, inventory: Inventory, *silent: str, joined: tuple[str, ...] = ("master",)) -> Observation:
    """Machines as the site says, but for those that do not answer; `joined` are control planes of a cluster."""
    machines = {name: one for name, one in converged(inventory).items() if name not in silent}
    for name in joined:
        if name in machines:
            machines[name] = machines[name].model_copy(update={"kubernetes": JOINED})
    return Observation(inventory, machines, dict.fromkeys(silent, "timed out"), at=1.8e9, answers=((SPACE,),))


def test_one_step_there_and_one_here(site: Site, inventory: Inventory) -> None:
    plan = Backup().plan(site, seen(site, inventory))
    packing, writing = plan.steps
    file = f"{site.directory.resolve()}/.pai/backups/20270115T080000Z.tar.gz"
    assert packing.action == Playbook(
        "backup.yml",
        {
            "backup_on_machine": "/var/lib/pai-install/backup/backup.tar",
            "backup_on_box": f"{file}.machine",
            "backup_snapshot": "",
        },
    )
    assert writing.action == LocalWork(
        "backup", {"file": file, "machine": f"{file}.machine", "cluster": "c-1", "of": "20270115T080000Z"}
    )
    assert writing.needs == ("backup",)
    assert all(step.looks for step in plan.steps), "it changes nothing"
    assert plan.hosts == ("master",)


def test_a_file_that_is_there_is_not_replaced(site: Site, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("")
    with raises("backup-file-exists"):
        Backup(file=str(tmp_path / "old")).require(site)
    Backup(file=str(tmp_path / "new")).require(site)
    Backup().require(site)


def test_without_a_control_plane_there_is_no_backup(site: Site, inventory: Inventory) -> None:
    with raises("control-plane-silent") as caught:
        Backup().plan(site, seen(site, inventory, "master"))
    assert caught.value.exit_code is ExitCode.UNREACHABLE


def restore() -> Restore:
    return Restore(machine="/tmp/x/machine.tar", cluster="c-1", created="2027-01-01T00:00:00Z")


def test_a_restoration_says_what_stops_and_asks_for_the_id(
    site: Site, inventory: Inventory, snapshot: SnapshotAssertion
) -> None:
    plan = restore().plan(site, seen(site, inventory))
    (step,) = plan.steps
    assert step.names == ("master",)
    assert isinstance(step.action, Playbook)
    assert step.action.variables["restore_leader"] == "master"
    assert step.hosts[0].effects == snapshot
    assert restore().typed(plan) == "c-1"
    assert "2027-01-01" in restore().question(plan, plan.hosts)


@pytest.fixture
def three(make_site: Callable[..., Site]) -> Site:
    return make_site(THREE)


def plane(name: str) -> Observed:
    return Observed(hostname=name, kubernetes=JOINED)


def test_the_others_leave_and_all_of_them_have_to_answer(
    three: Site, inventory: Inventory, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr("pai_install.operations.restore.Install.plan", lambda *_: Plan((), inventory))
    machines = {name: plane(name) for name in ("a", "b", "c")}
    plan = restore().plan(three, Observation(inventory, machines))
    assert plan.steps[0].names == ("a", "b", "c")
    assert [one.reasons[0] for one in plan.steps[0].hosts] == snapshot
    del machines["b"]
    with raises("restore-control-planes-silent") as caught:
        restore().plan(three, Observation(inventory, machines))
    assert caught.value.exit_code is ExitCode.UNREACHABLE


def test_machines_that_were_installed_anew_get_what_is_missing_first(site: Site, inventory: Inventory) -> None:
    bare = {machine.hostname: Observed(hostname=machine.hostname) for machine in site.present_machines}
    plan = restore().plan(site, Observation(inventory, bare))
    *before, last = plan.steps
    assert last.name == "restore"
    assert [step.name for step in before] == ["base", "time", "components", "runtime"]
    assert {name for step in before for name in step.names} == {"master"}, "the rest gets it by the apply that follows"
    assert restore().watched(site) == ("master",)
    assert last.after_all == tuple(step.name for step in before), "else others lose their data for nothing"
