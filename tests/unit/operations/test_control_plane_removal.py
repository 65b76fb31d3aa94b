"""Control planes that leave: etcd first lets them go, and nothing is touched before that is sure."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from pai_install.errors import ExitCode
from pai_install.operations.control_plane_removal import CHECK, LEAVE, out_of_etcd, removed_planes
from pai_install.operations.node_remove import NodeRemove
from pai_install.plan.model import HostStep, Inventory, LocalWork, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.site import Site
from pai_install.site.model import Machine, MachineRole, Ssh
from tests.errors import raises
from tests.unit.cluster.fake import FakeCluster
from tests.unit.operations.test_node_remove import node

HEAD = """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
machine-list:
"""
PLANE = '  - {{hostname: {name}, hostip: 10.0.0.{number}, machine-type: cpu, pai-master: "true"}}\n'
WORKER = '  - {hostname: w, hostip: 10.0.0.9, machine-type: cpu, pai-worker: "true"}\n'


def layout(*numbers: int) -> str:
    """Control planes m1, m2, ... and a worker."""
    return HEAD + "".join(PLANE.format(name=f"m{number}", number=number) for number in numbers) + WORKER


def member(name: str, number: int) -> Observed:
    joined = Membership(control_plane=True, node=True, joined=True)
    return Observed(hostname=name, roles={"base": RoleRecord()}, kubernetes=joined, machine_id=f"id-{number}")


def removed(
    make_site: Callable[..., Site],
    before: tuple[int, ...],
    *gone: int,
    silent: tuple[int, ...] = (),
    dead: bool = False,
    keep: bool = False,
) -> Plan:
    """The plan that takes some of these control planes out. silent: those that do not answer. keep: in the layout."""
    machines = tuple(one for one in make_site(layout(*before)).machines if one.hostname in {f"m{it}" for it in gone})
    text = layout(*(number for number in before if keep or number not in gone))
    for number in gone:
        text = text.replace(f"hostname: m{number},", f"hostname: m{number}, absent: true,")
    site = make_site(text)
    names = tuple(one.hostname for one in machines)
    operation = NodeRemove(machines=machines, nodes=names, dead=dead, how="absent" if keep else "remove")
    seen = {f"m{number}": member(f"m{number}", number) for number in before if number not in silent}
    nodes = [node(f"m{number}", ready=number not in silent, identity=f"id-{number}") for number in before]
    answers = FakeCluster.of(*nodes, node("w")).list(*operation.queries)
    inventory = Inventory({}, {}, {name: {} for name in seen})
    lost = {f"m{number}": "timed out" for number in silent}
    return operation.plan(site, Observation(inventory, seen, lost, answers=answers))


def names(plan: Plan) -> list[str]:
    return [step.name for step in plan.steps]


def test_etcd_is_asked_first_and_the_member_goes_before_the_machine(make_site: Callable[..., Site]) -> None:
    plan = removed(make_site, (1, 2, 3), 2, 3)
    assert names(plan) == ["etcd-check", "cordon", "etcd-leave", "leave", "clean", "forget"]
    check, _, leave = plan.steps[:3]
    assert (check.names, leave.names) == (("m1",), ("m1",))
    assert check.action == Playbook(
        "etcd-leave.yml", {"etcd_leaving": ["10.0.0.2", "10.0.0.3"], "etcd_only_check": True}
    )
    assert leave.action == Playbook(
        "etcd-leave.yml", {"etcd_leaving": ["10.0.0.2", "10.0.0.3"], "etcd_only_check": False}
    )
    assert all(CHECK in step.needs for step in plan.steps[1:3])
    assert all(LEAVE in step.needs for step in plan.steps[3:])


def test_the_first_one_goes_by_the_word_of_the_next(make_site: Callable[..., Site]) -> None:
    plan = removed(make_site, (1, 2, 3), 1, 2)
    assert plan.leader == "m3"
    assert {step.names for step in plan.steps if step.name.startswith("etcd")} == {("m3",)}


def test_a_dead_one_is_cleaned_no_more(make_site: Callable[..., Site]) -> None:
    plan = removed(make_site, (1, 2, 3), 1, silent=(1,), dead=True, keep=True)
    assert names(plan) == ["etcd-check", "etcd-leave", "leave", "forget"]
    assert plan.leader == "m2"


def test_a_dead_one_whose_name_another_machine_takes_is_not_asked(make_site: Callable[..., Site]) -> None:
    """The layout still has it as a control plane; its silence must not end the command before the new one joins."""
    site = make_site(layout(1, 2, 3))
    operation = NodeRemove(machines=(site.machine("m1"),), nodes=("m1",), dead=True, how="replaced")
    assert operation.watched(site) == ("m2", "m3")


def test_of_those_that_stay_one_has_to_answer(make_site: Callable[..., Site]) -> None:
    with raises("leader-unreachable") as caught:
        removed(make_site, (1, 2, 3), 3, silent=(1, 2), keep=True)
    assert caught.value.exit_code is ExitCode.UNREACHABLE


def test_one_has_to_stay(make_site: Callable[..., Site]) -> None:
    site = make_site(layout(1))
    with raises("last-control-plane", "m1"):
        removed_planes(site.machines, site)
    assert removed_planes([one for one in site.machines if one.worker], site) == ()


def _machine(*, control_plane: bool) -> Machine:
    ssh = Ssh(user="pai", port=22)
    roles = frozenset[MachineRole]({"worker", "control-plane"} if control_plane else {"worker"})
    return Machine(hostname="m2", hostip="10.0.0.2", sku="cpu", roles=roles, ssh=ssh)


STEPS = ("cordon", "await-jobs", "drain", "leave", "clean", "forget")


@given(there=st.sets(st.sampled_from(STEPS)), planes=st.booleans())
def test_whatever_a_removal_consists_of(there: set[str], *, planes: bool) -> None:
    """Order stays, workers need nothing more, and no step of a control plane comes before etcd was asked."""
    steps = [Step(name, name, (HostStep("m2", ()),), LocalWork(name)) for name in STEPS if name in there]
    machines = [_machine(control_plane=planes)]
    found = out_of_etcd(steps, machines, "m1", ("leave", "clean", "forget"))
    assert [step.name for step in found if step.name not in (CHECK, LEAVE)] == [step.name for step in steps]
    if not planes:
        assert found == tuple(steps)
        return
    order = [step.name for step in found]
    assert order[0] == CHECK
    going = order.index(LEAVE)
    assert not {"leave", "clean", "forget"} & {*order[:going]}
    assert not {"cordon", "await-jobs", "drain"} & {*order[going:]}
