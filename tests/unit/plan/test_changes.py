"""Changes that a running cluster cannot take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.plan.changes import RefusedChange, refusal, refused_changes
from pai_install.plan.inventory import digest
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.site import Site, load_site
from pai_install.site.field_metadata import ChangeClass
from pai_install.site.field_metadata import changes as declared_changes
from pai_install.site.settings import Settings
from tests.unit.plan.conftest import CONFIG, LAYOUT

ENDPOINT = "kubernetes.pai.internal:7443"
RUNS = {
    "pod_cidr": "10.200.0.0/13",
    "service_cidr": "10.192.0.0/13",
    "node_prefix": "25",
    "address": "10.0.0.1",
    "version": "1.36.3",
    "endpoint": ENDPOINT,
    "backend": "vxlan",
}
Make = Callable[..., Site]


def member(name: str, *, joined: bool = True, settings: dict[str, str] | None = None, **ran_with: Any) -> Observed:
    """A machine of the cluster; ran_with: values that its control plane role last ran with."""
    records = {"control_plane": RoleRecord(settings={f"control_plane_{key}": digest(v) for key, v in ran_with.items()})}
    membership = Membership(node=True, joined=joined, node_name=name, settings=settings or {})
    return Observed(hostname=name, kubernetes=membership, roles=records)


def observed(**settings: str) -> dict[str, Observed]:
    """One control plane that runs with RUNS, but for `settings`, and a worker."""
    return {"master": member("master", settings={**RUNS, **settings}), "worker1": member("worker1")}


def changes(site: Site, seen: dict[str, Observed], *, version: str = "1.36.3") -> list[tuple[str, str, str]]:
    return [(it.name, it.runs, it.wanted) for it in refused_changes(site, version, ENDPOINT, seen, {})]


def test_cluster_that_runs_what_the_site_says_has_none(site: Site) -> None:
    assert changes(site, observed()) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("pod_cidr: 10.9.0.0/16\n", ("pod_cidr", "10.200.0.0/13", "10.9.0.0/16")),
        ("service_cidr: 10.8.0.0/16\n", ("service_cidr", "10.192.0.0/13", "10.8.0.0/16")),
        ("pod_cidr_node_prefix: 24\n", ("pod_cidr_node_prefix", "25", "24")),
        ("flannel_backend: host-gw\n", ("flannel_backend", "vxlan", "host-gw")),
    ],
)
def test_networks_are_fixed(make_site: Make, config: str, expected: tuple[str, str, str]) -> None:
    site = make_site(config=CONFIG + config)
    assert changes(site, observed()) == [expected]


@pytest.mark.parametrize(
    ("wanted", "remedy"),
    [("1.35.8", "downgrades"), ("1.36.2", "downgrades"), ("1.36.10", "upgrade"), ("1.37.0", "upgrade")],
)
def test_other_version_is_refused_with_the_reason(site: Site, wanted: str, remedy: str) -> None:
    (found,) = refused_changes(site, wanted, ENDPOINT, observed(), {})
    assert (found.name, found.runs, found.wanted) == ("kubernetes_version", "1.36.3", wanted)
    assert 'write kubernetes_version: "1.36.3"' in found.remedy
    assert remedy in found.remedy


def test_every_setting_that_cannot_change_is_compared(make_site: Make) -> None:
    """What site/settings.py declares as fixed is what is refused."""
    fixed = {name for name, change in declared_changes(Settings).items() if change.kind is ChangeClass.FIXED}
    lines = "pod_cidr: 10.9.0.0/16\nservice_cidr: 10.8.0.0/16\npod_cidr_node_prefix: 24\nflannel_backend: host-gw\n"
    site = make_site(config=CONFIG + lines)
    assert {name for name, *_ in changes(site, observed(endpoint="other:1"), version="1.35.8")} == fixed


def test_network_may_be_spelled_in_another_way(site: Site) -> None:
    assert changes(site, observed(pod_cidr="10.200.0.1/13")) == []


def test_address_that_every_kubeconfig_names_is_fixed(site: Site) -> None:
    assert changes(site, observed(endpoint="127.0.0.1:7443")) == [("hosts_entries", "127.0.0.1:7443", ENDPOINT)]


def test_name_of_a_member_and_address_of_a_control_plane_are_fixed(site: Site) -> None:
    seen = {**observed(address="10.0.0.9"), "worker1": member("gpu-old")}
    found = refused_changes(site, "1.36.3", ENDPOINT, seen, {"worker1": "gpu-old"})
    assert [(it.name, it.machine, it.path) for it in found] == [
        ("hostip", "master", ("machine-list", 0, "hostip")),
        ("hostname", "worker1", ("machine-list", 1, "hostname")),
    ]
    assert "set hostname: gpu-old" in found[1].remedy


@pytest.mark.parametrize(
    "seen",
    [
        {},
        {"master": Observed(hostname="master")},
        {"master": member("master", joined=False, settings={**RUNS, "pod_cidr": "10.1.0.0/16"})},
        {"master": member("master", settings={})},
    ],
    ids=["nobody answers", "bare", "cut-off", "files unreadable"],
)
def test_what_does_not_run_fixes_nothing(site: Site, seen: dict[str, Observed]) -> None:
    assert changes(site, seen, version="1.35.8") == []


def test_file_changed_by_hand_is_drift_and_no_change_of_the_site(site: Site) -> None:
    """The role last ran with what the site says: apply puts the manifest back."""
    by_hand = {**RUNS, "pod_cidr": "10.1.0.0/16", "version": "1.36.2"}
    seen = {"master": member("master", settings=by_hand, pod_cidr=site.settings.pod_cidr, version="1.36.3")}
    assert changes(site, seen) == []


def test_three_control_planes_say_it_once(make_site: Make) -> None:
    lines = "".join(
        f"  - {{hostname: m{n}, hostip: 10.0.1.{n}, machine-type: cpu, pai-master: 'true'}}\n" for n in (1, 2)
    )
    site = make_site(layout=LAYOUT + lines)
    seen = {
        name: member(name, settings={**RUNS, "address": address})
        for name, address in (("master", "10.0.0.1"), ("m1", "10.0.1.1"), ("m2", "10.0.1.2"))
    }
    assert changes(site, seen, version="1.35.8") == [("kubernetes_version", "1.36.3", "1.35.8")]


def test_refusal_names_file_line_what_runs_and_what_to_do(make_site: Make, tmp_path: Path) -> None:
    site = make_site(config=CONFIG + "pod_cidr: 10.9.0.0/16\n")
    found = refused_changes(site, "1.35.8", ENDPOINT, observed(), {})
    error = refusal(found, load_site(tmp_path).sources)
    assert error.exit_code is ExitCode.PREFLIGHT_FAILED
    place = f"{tmp_path / 'config.yaml'}:3:1"
    assert f"{place}: pod_cidr: the cluster runs with 10.200.0.0/13, the site says 10.9.0.0/16" in error.details
    assert "keep pod_cidr: 10.200.0.0/13" in error.details
    assert "config.yaml (default): kubernetes_version: the cluster runs with 1.36.3" in error.details


def test_status_tells_it_as_a_finding() -> None:
    change = RefusedChange("config.yaml", ("pod_cidr",), "pod_cidr", "", "10.1.0.0/16", "10.2.0.0/16", "keep it")
    finding = change.as_finding()
    assert (finding.verdict, finding.subject, finding.value) == (Verdict.FAIL, "cluster", "10.1.0.0/16")
