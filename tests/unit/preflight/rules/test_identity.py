"""Names, ids, addresses."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.site import Site
from tests.unit.preflight.machines import LAYOUT, findings_of, interface, read_site

SAME = {"worker1": {"identity": {"machine_id": "f" * 32}}, "worker2": {"identity": {"machine_id": "f" * 32}}}


@pytest.mark.parametrize(
    ("seen", "verdict"), [("worker1", "PASS"), ("worker1.example.com", "PASS"), ("WORKER1", "PASS"), ("gpu-07", "FAIL")]
)
def test_hostname_is_that_of_the_layout(site: Site, seen: str, verdict: str) -> None:
    found = findings_of(site, "hostname", {"worker1": {"identity": {"hostname": seen}}})["worker1"]
    assert found.verdict == verdict
    assert (found.expected == "worker1") == (verdict == "FAIL")


def test_exchanged_addresses_are_guessed(site: Site) -> None:
    found = findings_of(site, "hostname", {"worker1": {"identity": {"hostname": "worker2"}}})["worker1"]
    assert "may be swapped" in found.remedy


def test_hostname_twice(site: Site) -> None:
    found = findings_of(site, "hostname-unique", {"worker1": {"identity": {"hostname": "Worker2"}}})
    assert found["worker1"].verdict is found["worker2"].verdict is Verdict.FAIL
    assert "worker2" in found["worker1"].message
    assert found["master"].verdict is Verdict.PASS


def test_machine_id_twice(site: Site) -> None:
    found = findings_of(site, "machine-id", SAME)
    assert [found[name].verdict for name in ("master", "worker1", "worker2")] == ["PASS", "FAIL", "FAIL"]
    assert "systemd-machine-id-setup" in found["worker1"].remedy


@pytest.mark.parametrize("seen", ["", "uninitialized"])
def test_machine_id_missing(site: Site, seen: str) -> None:
    assert findings_of(site, "machine-id", {"master": {"identity": {"machine_id": seen}}})["master"].verdict == "FAIL"


def test_many_copies_of_one_image_are_told_briefly(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    from pai_install.preflight.judge import judge  # noqa: PLC0415
    from tests.unit.preflight.machines import fleet  # noqa: PLC0415

    names = [f"copy{number}" for number in range(10)]
    lines = [
        f'  - {{hostname: {name}, hostip: 10.0.1.{number + 1}, machine-type: cpu, pai-worker: "true"}}\n'
        for number, name in enumerate(names)
    ]
    site = read_site(tmp_path / "copies", LAYOUT + "".join(lines))
    one = fleet()["worker2"]
    found = [item for item in judge(site, dict.fromkeys(names, one), {}) if item.id == "machine-id"]
    assert len(found) == 10
    assert found[0].message == snapshot


def test_product_uuid(site: Site) -> None:
    same = {"identity": {"product_uuid": "AA"}}
    found = findings_of(site, "product-uuid", {"worker1": same, "worker2": {"identity": {"product_uuid": "aa"}}})
    assert [found[name].verdict for name in ("master", "worker1", "worker2")] == ["PASS", "WARN", "WARN"]


@pytest.mark.parametrize(
    "identity",
    [
        {"product_uuid": ""},
        {"product_uuid": "", "root": False},
        {"product_uuid": "00000000-0000-0000-0000-000000000000"},
        {"container": "lxc", "product_uuid": "4c4c4544-0000-0000-0000-000000000002"},
    ],
)
def test_product_uuid_that_says_nothing(site: Site, identity: dict[str, object]) -> None:
    assert findings_of(site, "product-uuid", {"worker2": {"identity": identity}})["worker2"].verdict is Verdict.SKIP


def test_address_must_be_the_machines_own(site: Site) -> None:
    found = findings_of(site, "address", {"master": {"interfaces": [interface("192.168.7.7/24")]}})["master"]
    assert found.verdict is Verdict.FAIL
    assert (found.value, found.expected) == ("192.168.7.7/24", "10.0.0.1")


def test_mac_twice(site: Site) -> None:
    found = findings_of(
        site, "address", {"worker1": {"interfaces": [interface("10.0.0.2/24", mac="52:54:00:00:00:01")]}}
    )
    assert [found[name].verdict for name in ("master", "worker1", "worker2")] == ["FAIL", "FAIL", "PASS"]


def test_macs_of_other_interfaces_may_be_the_same(site: Site) -> None:
    bridges = [
        {
            "interfaces": [
                interface("172.17.0.1/16", name="docker0", mac="02:42:00:00:00:01"),
                interface(address, mac=mac),
            ]
        }
        for address, mac in (("10.0.0.1/24", "52:54:00:00:00:01"), ("10.0.0.2/24", "52:54:00:00:00:02"))
    ]
    found = findings_of(site, "address", {"master": bridges[0], "worker1": bridges[1]})
    assert {finding.verdict for finding in found.values()} == {Verdict.PASS}
