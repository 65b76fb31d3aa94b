"""`up`: what it makes, in which order, and that what runs is left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import PaiError
from pai_install.lab import box, bringup, cgroups, disk, faults, keys, machine, names, network, plan, rootfs
from pai_install.lab.bringup import heal, reinstall, up
from pai_install.lab.cgroups import Hierarchy
from pai_install.lab.machine_options import Choice
from pai_install.lab.names import lab_names
from pai_install.lab.record import Kind, read_record
from pai_install.lab.spec import LabMachine, LabSpec
from tests.errors import raises

Steps = list[str]


@pytest.fixture
def steps(tmp_path: Path, spec: LabSpec, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A box on which every step is only written down; a machine runs once it was started."""
    done: Steps = []
    trees = (Hierarchy(tmp_path / "cgroup", unified=False),)
    (tmp_path / "cgroup").mkdir()

    def step(name: str, result: Any = True) -> Callable[..., Any]:  # noqa: FBT002 - what the step returns
        def run(*arguments: Any, **_options: Any) -> Any:
            who = next((one.name for one in arguments if isinstance(one, LabMachine)), "")
            done.append(f"{name} {who}".strip())
            return result

        return run

    def start(own: names.MachineNames, _script: str) -> machine.Process:
        done.append(f"start {own.folder.name}")
        return machine.Process(4242, 1)

    def image(suite: str, _notify: Any) -> Path:
        done.append("image" if suite == "trixie" else f"image {suite}")
        return tmp_path / f"base-{suite}-123"

    def mixed(_spec: LabSpec, one: LabMachine, name: str) -> None:
        done.append(f"mix {name} {one.name}")

    def root(_spec: LabSpec, one: LabMachine, base: Path) -> None:
        done.append(f"root {one.name}")
        link = names.machine_names(_spec, one).base
        link.parent.mkdir(parents=True, exist_ok=True)
        base.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(base)

    def is_running(groups: cgroups.MachineCgroups) -> bool:
        return f"start {groups.own[0].name}" in done

    monkeypatch.setattr(names, "LABS_DIR", tmp_path / "labs")
    monkeypatch.setattr(box, "LABS_DIR", tmp_path / "labs")
    monkeypatch.setattr(box, "require_root", lambda: None)
    monkeypatch.setattr(plan, "exists", lambda _resource: False)
    for module in (plan, bringup):
        monkeypatch.setattr(module, "box_hierarchies", lambda: trees)
    monkeypatch.setattr(bringup, "ensure_requirements", step("requirements", ()))
    monkeypatch.setattr(bringup, "ensure_base", image)
    monkeypatch.setattr(bringup, "mix_in", mixed)
    monkeypatch.setattr(bringup, "raise_settings", step("settings", ("ip_forward",)))
    monkeypatch.setattr(bringup, "wait_ready", step("wait"))
    monkeypatch.setattr(network, "ensure_bridge", step("bridge"))
    monkeypatch.setattr(network, "ensure_nat", step("nat"))
    monkeypatch.setattr(network, "ensure_link", step("link"))
    monkeypatch.setattr(network, "drops_forwarded", lambda: False)
    monkeypatch.setattr(rootfs, "ensure_root", root)
    monkeypatch.setattr(rootfs, "authorize", step("authorize"))
    monkeypatch.setattr(keys, "ensure_host_key", lambda _folder, name: f"ssh-ed25519 {name}")
    monkeypatch.setattr(machine, "start", start)
    monkeypatch.setattr(machine, "is_running", is_running)
    return done


def bring_up(spec: LabSpec, choice: Choice | None = None) -> bringup.UpReport:
    return up(spec, choice, confirm=lambda _question: True, progress=lambda _line: None)


def test_a_machine_is_plugged_in_and_filled_before_it_starts(spec: LabSpec, steps: Steps) -> None:
    bring_up(spec)
    for name in ("one", "two"):
        order = [steps.index(f"{step} {name}") for step in ("link", "root", "start", "authorize", "wait")]
        assert order == sorted(order)
    assert steps.index("requirements") < steps.index("image") < steps.index("bridge") < steps.index("link one")


def test_what_was_made_is_reported_and_recorded(spec: LabSpec, steps: Steps) -> None:
    report = bring_up(spec)
    assert "started one" in report.changed
    assert "started two" in report.changed
    assert any("172.30.79.1" in line for line in report.changed)
    record = read_record(lab_names(spec).record)
    assert record is not None
    assert {one.name: one.detail for one in record.of(Kind.PROCESS)} == {"one": "4242:1", "two": "4242:1"}
    assert [one.name for one in record.of(Kind.KEY_PAIR)] == [str(spec.key_file)]


def test_its_key_is_nobody_elses_and_in_no_repository(spec: LabSpec, steps: Steps) -> None:
    bring_up(spec)
    assert spec.state_dir.stat().st_mode & 0o777 == 0o700
    assert (spec.state_dir / ".gitignore").read_text() == "*\n"


def test_host_keys_are_published(spec: LabSpec, steps: Steps) -> None:
    bring_up(spec)
    assert "172.30.79.11,[172.30.79.11]:22,one ssh-ed25519 one\n" in spec.known_hosts.read_text()


def test_a_second_up_starts_nothing_and_reports_nothing(
    spec: LabSpec, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_up(spec)
    for name in ("ensure_bridge", "ensure_nat"):
        monkeypatch.setattr(network, name, lambda _spec: False)
    monkeypatch.setattr(bringup, "raise_settings", tuple)
    before = steps.count("start one")
    assert bring_up(spec).changed == ()
    assert steps.count("start one") == before


def test_only_the_stopped_machine_starts(spec: LabSpec, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    bring_up(spec)
    steps.remove("start two")
    report = bring_up(spec)
    assert [line for line in report.changed if line.startswith("started")] == ["started two"]
    assert steps.count("start one") == 1


def test_the_users_own_key_is_not_the_labs_to_remove(spec: LabSpec, steps: Steps) -> None:
    keys.ensure_key_pair(spec.key_file)
    bring_up(spec)
    record = read_record(lab_names(spec).record)
    assert record is not None
    assert record.of(Kind.KEY_PAIR) == ()


def test_a_box_that_drops_forwarded_packets_gets_rules_on_record(
    spec: LabSpec, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "drops_forwarded", lambda: True)
    monkeypatch.setattr(network, "ensure_forward_rules", lambda _spec: True)
    report = bring_up(spec)
    record = read_record(lab_names(spec).record)
    assert record is not None
    assert [one.name for one in record.of(Kind.FORWARD_RULE)] == ["pb-ac1e4f00"]
    assert any("firewall" in line for line in report.changed)


def test_the_record_is_there_when_a_step_fails(spec: LabSpec, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_spec: LabSpec) -> bool:
        raise PaiError("no bridge")

    monkeypatch.setattr(network, "ensure_bridge", broken)
    with pytest.raises(PaiError, match="no bridge"):
        bring_up(spec)
    record = read_record(lab_names(spec).record)
    assert record is not None
    assert record.of(Kind.BRIDGE)
    assert not [step for step in steps if step.startswith("start")]


def test_one_machine_that_does_not_come_up_is_an_error(
    spec: LabSpec, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(_spec: LabSpec, one: LabMachine) -> None:
        if one.name == "two":
            raise PaiError("two did not come up")

    monkeypatch.setattr(bringup, "wait_ready", wait)
    with pytest.raises(PaiError, match="two"):
        bring_up(spec)


def test_a_site_that_is_no_lab_is_refused_before_anything(spec: LabSpec, steps: Steps) -> None:
    with raises("lab-site-unfit"):
        bring_up(LabSpec((), "pai", spec.key_file, spec.state_dir))
    assert steps == []


@pytest.mark.usefixtures("steps")
def test_healing_records_the_host_key_that_the_site_forgot(spec: LabSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "clear", lambda _spec, _one: ())
    one, other = spec.machines
    spec.known_hosts.parent.mkdir(parents=True, exist_ok=True)
    spec.known_hosts.write_text(f"{one.address} ssh-ed25519 earlier\n{other.address} ssh-ed25519 kept\n")
    heal(spec, one)
    assert f"{one.name} ssh-ed25519 {one.name}\n" in spec.known_hosts.read_text()
    assert "earlier" not in spec.known_hosts.read_text()
    assert f"{other.address} ssh-ed25519 kept\n" in spec.known_hosts.read_text()


def test_healing_takes_faults_back_and_starts_what_is_off(
    spec: LabSpec, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_up(spec)
    monkeypatch.setattr(faults, "clear", lambda _spec, _one: ("net-cut",))
    assert heal(spec, spec.machines[0]) == ("net-cut",)
    steps.remove("start one")
    assert heal(spec, spec.machines[0]) == ("net-cut", "power-off")
    assert steps.count("start one") == 1


def base_of(spec: LabSpec, name: str) -> str:
    return names.machine_names(spec, spec.machine(name)).base.readlink().name


def test_each_machine_gets_the_suite_that_was_named_for_it(spec: LabSpec, steps: Steps) -> None:
    bring_up(spec, Choice({"two": "bookworm"}))
    assert (base_of(spec, "one"), base_of(spec, "two")) == ("base-trixie-123", "base-bookworm-123")
    assert steps.count("image") == steps.count("image bookworm") == 1


def test_a_machine_that_is_there_keeps_its_suite_and_needs_no_image(spec: LabSpec, steps: Steps) -> None:
    bring_up(spec, Choice({"one": "bookworm", "two": "bookworm"}))
    assert "image" not in steps
    for again in (Choice(), Choice({"one": "bookworm"})):
        bring_up(spec, again)
    heal(spec, spec.machines[0])
    assert (steps.count("image bookworm"), "image" in steps) == (1, False)


def test_another_suite_for_a_machine_that_is_there_is_refused_before_anything(spec: LabSpec, steps: Steps) -> None:
    bring_up(spec)
    before = [step for step in steps if step != "requirements"]
    with raises("lab-machine-exists-with-other-system"):
        bring_up(spec, Choice({"one": "bookworm"}))
    assert [step for step in steps if step != "requirements"] == before


def test_mix_ins_run_once_in_their_order_on_a_machine_that_is_up(
    spec: LabSpec, steps: Steps, snapshot: SnapshotAssertion
) -> None:
    choice = Choice(mixins={"two": ("b", "a")})
    report = bring_up(spec, choice)
    assert [step for step in steps if step.startswith("mix")] == ["mix b two", "mix a two"]
    assert steps.index("wait two") < steps.index("mix b two")
    assert report.changed == snapshot
    again = bring_up(spec, Choice(mixins={"two": ("b", "a", "c")}))
    assert [line for line in again.changed if line.startswith("mixed")] == snapshot


def test_a_mix_in_that_failed_runs_again(
    spec: LabSpec, steps: Steps, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    def fails(_spec: LabSpec, one: LabMachine, name: str) -> None:
        raise PaiError(f"{one.name} cannot have {name}")

    with monkeypatch.context() as broken:
        broken.setattr(bringup, "mix_in", fails)
        with pytest.raises(PaiError, match="two cannot have b"):
            bring_up(spec, Choice(mixins={"two": ("b",)}))
    assert bring_up(spec, Choice(mixins={"two": ("b",)})).changed == snapshot


def test_nobody_waits_for_a_machine_behind_a_bastion(spec: LabSpec, steps: Steps) -> None:
    bring_up(spec, Choice(mixins={"two": ("behind-bastion",)}))
    bring_up(spec)
    assert (steps.count("wait one"), steps.count("wait two")) == (2, 1)


def test_one_that_is_installed_anew_gets_a_new_disk_of_its_suite_and_its_mix_ins_again(
    spec: LabSpec, steps: Steps, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    bring_up(spec, Choice(suites={"two": "noble"}, mixins={"two": ("a",)}))
    own = names.machine_names(spec, spec.machines[1])
    own.disk.mkdir()
    own.image.write_text("what it wrote")
    (own.folder / "prepared").touch()
    known = spec.known_hosts.read_text()
    monkeypatch.setattr(keys, "ensure_host_key", lambda _folder, name: f"ssh-ed25519 another-of-{name}")
    for name in ("delete_link", "delete_netns"):
        monkeypatch.setattr(network, name, lambda called, name=name: steps.append(f"{name} {called}"))
    monkeypatch.setattr(disk, "unmount", lambda path: steps.append(f"unmount {path.name}"))
    monkeypatch.setattr(machine, "is_running", lambda _groups: False)
    monkeypatch.setattr(machine, "kill", lambda _keepers, groups: steps.append(f"kill {next(iter(groups)).name}"))
    del steps[:]
    reinstall(spec, spec.machines[1])
    gone = [f"delete_link {own.veth}", f"delete_netns {own.netns}", "unmount root", "unmount disk"]
    order = [*gone, "link two", "root two", f"unmount {own.nspawn}", "start two", "authorize two", "wait two"]
    assert [step for step in steps if not step.startswith("kill")] == order
    assert steps[0] == "kill two"
    assert (own.image.exists(), own.disk.exists(), (own.folder / "prepared").exists()) == (False, False, False)
    assert "noble" in own.base.readlink().name
    assert spec.known_hosts.read_text() == known, "the site meets another host key, as with new hardware"
    assert bring_up(spec, Choice(mixins={"two": ("a",)})).changed[-1] == snapshot
