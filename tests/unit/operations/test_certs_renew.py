"""Which control planes get new certificates, and when the controller host gets the kubeconfig."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.operations.certs_renew import CertsRenew
from pai_install.operations.install import Install
from pai_install.operations.kubeconfig import missing_kubeconfig
from pai_install.plan.certificates import KUBECONFIG
from pai_install.plan.model import Inventory, Plan, Playbook
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Certificate, ClusterFacts, Membership, Observed
from pai_install.site import Site
from tests.errors import raises
from tests.unit.plan.conftest import converged

NOW = 1_800_000_000.0
DAY = 86400
THREE = """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
machine-list:
  - {hostname: a, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: b, hostip: 10.0.0.2, machine-type: cpu, pai-master: "true"}
  - {hostname: c, hostip: 10.0.0.3, machine-type: cpu, pai-master: "true", pai-worker: "true"}
"""


def ends(path: str, days: float, *, unread: bool = False) -> Certificate:
    return Certificate(path=path, expires=int(NOW + days * DAY), unread=unread)


def plane(name: str, days: float, *, unread: bool = False) -> Observed:
    """A control plane whose certificates end in so many days; its authority and its kubelet's are others' business."""
    own = (
        ends("/etc/kubernetes/pki/apiserver.crt", days, unread=unread),
        ends("/etc/kubernetes/admin.conf", days),
        ends("/etc/kubernetes/pki/ca.crt", 3000),
        ends("/var/lib/kubelet/pki/kubelet-client-current.pem", 1),
    )
    member = Membership(control_plane=True, node=True, joined=True)
    return Observed(hostname=name, certificates=own, kubernetes=member, cluster=ClusterFacts())


def seen(*machines: Observed, box: float | None = 364) -> Observation:
    """The controller host's kubeconfig ends in `box` days; None: it has none."""
    own = () if box is None else (ends(KUBECONFIG, box),)
    names = {machine.hostname: machine for machine in machines}
    return Observation(Inventory({}, {}, {name: {} for name in names}), names, at=NOW, box=own)


def steps(plan: Plan) -> list[tuple[str, tuple[str, ...]]]:
    return [(step.name, step.names) for step in plan.steps]


@pytest.fixture
def three(make_site: Callable[..., Site]) -> Site:
    return make_site(THREE)


def test_those_that_end_in_time_are_renewed_in_order_and_proven(three: Site, snapshot: SnapshotAssertion) -> None:
    plan = CertsRenew(within_days=30).plan(three, seen(plane("a", 10), plane("b", 200), plane("c", 10)))
    assert steps(plan) == [
        ("certs-renew", ("a", "c")),
        ("kubeconfig", ("a",)),
        ("verify", ("a", "c")),
        ("health", ("a", "c")),
    ]
    renewal, copy = plan.steps[:2]
    assert renewal.action == Playbook("certs-renew.yml", {"certificates_within_days": 30})
    assert renewal.hosts[0].reasons == snapshot
    assert renewal.hosts[0].effects == snapshot
    assert renewal.hosts[0].impact == ()
    assert isinstance(copy.action, Playbook)
    assert str(copy.action.variables["control_plane_kubeconfig_dest"]).endswith("/.pai/kubeconfig")
    assert copy.looks


def test_again_there_is_nothing_to_do(three: Site, snapshot: SnapshotAssertion) -> None:
    plan = CertsRenew().plan(three, seen(plane("a", 364), plane("b", 364), plane("c", 364)))
    assert plan.empty
    assert plan.nothing == snapshot


def test_a_renewal_that_was_cut_off_goes_on_where_programs_have_not_read_the_new_ones(
    three: Site, snapshot: SnapshotAssertion
) -> None:
    plan = CertsRenew().plan(three, seen(plane("a", 364), plane("b", 364, unread=True), plane("c", 200)))
    assert steps(plan)[0] == ("certs-renew", ("b", "c"))
    assert plan.steps[0].hosts[0].reasons == snapshot


def test_a_single_control_plane_is_away_for_a_while(site: Site, snapshot: SnapshotAssertion) -> None:
    plan = CertsRenew().plan(site, seen(plane("master", 10)))
    assert plan.steps[0].hosts[0].impact[0].startswith("the API does not answer for some seconds")
    assert CertsRenew().question(plan, plan.hosts) == snapshot


@pytest.mark.parametrize(
    ("box", "why"), [(None, "the controller host has no kubeconfig"), (3, "that of the controller host ends")]
)
def test_the_dev_box_alone_may_need_it(three: Site, box: float | None, why: str, snapshot: SnapshotAssertion) -> None:
    plan = CertsRenew(within_days=30).plan(three, seen(plane("b", 200), box=box))
    assert steps(plan) == [("kubeconfig", ("b",))]
    assert plan.steps[0].hosts[0].reasons == (why,)
    assert CertsRenew().question(plan, plan.hosts) == snapshot


def test_without_a_cluster_there_is_nothing_to_renew(site: Site) -> None:
    with raises("control-plane-silent") as caught:
        CertsRenew().plan(site, seen(Observed(hostname="master"), box=None))
    assert caught.value.exit_code == ExitCode.USAGE
    assert CertsRenew().plan(site, seen(box=None)).empty  # no machine answered: that is what the run reports


@pytest.mark.parametrize(
    ("box", "control_plane", "words"),
    [
        (None, 300, "the controller host has no kubeconfig of this cluster"),
        (300, 360, ""),
        (10, 360, "that of the controller host ends soon"),
        (10, 10, ""),
        (-5, 360, "that of the controller host ends soon"),
    ],
)
def test_when_apply_brings_it(box: float | None, control_plane: float, words: str) -> None:
    assert missing_kubeconfig(seen(plane("master", control_plane), box=box), "master") == words
    assert missing_kubeconfig(replace(seen(plane("master", control_plane)), box=None), "master") == ""


def test_apply_brings_it_to_a_new_dev_box_and_does_no_more(
    site: Site, inventory: Inventory, snapshot: SnapshotAssertion
) -> None:
    machines = converged(inventory)
    member = Membership(control_plane=True, node=True, joined=True)
    machines["master"] = machines["master"].model_copy(update={"kubernetes": member})
    plan = Install().plan(site, Observation(inventory, machines, box=()))
    assert steps(plan) == [("kubeconfig", ("master",))]
    assert Install(phases=("time",)).plan(site, Observation(inventory, machines, box=())).steps[0].name == "time"
    known = Observation(inventory, machines, box=(ends(KUBECONFIG, 300),))
    assert Install().plan(site, known).empty
    astray = ends(KUBECONFIG, 300).model_copy(update={"problem": "it leads to 10.0.0.9"})
    (step,) = Install().plan(site, replace(known, box=(astray,))).steps
    assert step.hosts[0].reasons == snapshot
