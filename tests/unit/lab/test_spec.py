"""Which sites can be a lab."""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from pai_install.errors import ExitCode, PaiError
from pai_install.lab.spec import LabGpus, LabMachine, LabSpec, checked, spec_of, state_dir_of
from pai_install.site import load_site
from tests.errors import raises

LAYOUT = """
machine-sku:
  small: {mem: 1Gi, cpu: {vcore: 1}}
machine-list:
  - {hostname: a, hostip: 172.30.79.11, machine-type: small, pai-master: "true"}
  - {hostname: b, hostip: 172.30.79.12, machine-type: small, pai-worker: "true"}
  - {hostname: c, hostip: 172.30.79.13, machine-type: small, pai-worker: "true", absent: true}
"""


def write_site(folder: Path, layout: str = LAYOUT, config: str = "user: pai\npassword: x\n") -> Path:
    (folder / "layout.yaml").write_text(layout)
    (folder / "config.yaml").write_text(config)
    return folder


def with_addresses(spec: LabSpec, *addresses: str) -> LabSpec:
    machines = tuple(LabMachine(f"m{number}", IPv4Address(text)) for number, text in enumerate(addresses))
    return replace(spec, machines=machines)


def test_subnet_is_the_24_around_the_machines_and_the_box_has_its_first_address(spec: LabSpec) -> None:
    assert spec.subnet == IPv4Network("172.30.79.0/24")
    assert spec.gateway == IPv4Address("172.30.79.1")


def test_machines_in_two_subnets_are_refused(spec: LabSpec) -> None:
    with raises("lab-site-unfit", "2") as caught:
        checked(with_addresses(spec, "10.1.1.2", "10.1.2.2"))
    assert caught.value.exit_code is ExitCode.SITE_INVALID


@pytest.mark.parametrize("address", ["172.30.79.1", "172.30.79.0", "172.30.79.255", "8.8.8.8"])
def test_addresses_that_are_not_free_to_take_are_refused(spec: LabSpec, address: str) -> None:
    with pytest.raises(PaiError, match=re.escape(address)):
        checked(with_addresses(spec, address))


def test_twice_the_same_address_or_name_is_refused(spec: LabSpec) -> None:
    with raises("lab-site-unfit"):
        checked(with_addresses(spec, "172.30.79.5", "172.30.79.5"))
    twin = replace(spec.machines[1], name="one")
    with raises("lab-site-unfit"):
        checked(replace(spec, machines=(spec.machines[0], twin)))


def test_no_machines_are_refused(spec: LabSpec) -> None:
    with raises("lab-site-unfit"):
        checked(replace(spec, machines=()))


def test_a_good_one_passes_unchanged(spec: LabSpec) -> None:
    assert checked(spec) is spec


def test_unknown_machine_is_a_usage_error_that_lists_the_known(spec: LabSpec) -> None:
    with raises("lab-unknown-machine") as caught:
        spec.machine("three")
    assert caught.value.exit_code is ExitCode.USAGE
    assert "one, two" in caught.value.remedy


def test_machine_by_name(spec: LabSpec) -> None:
    assert spec.machine("two").port == 2222


def test_spec_of_a_site_leaves_absent_machines_out_and_defaults_the_key(tmp_path: Path) -> None:
    found = spec_of(load_site(write_site(tmp_path)).site)
    assert [(machine.name, str(machine.address)) for machine in found.machines] == [
        ("a", "172.30.79.11"),
        ("b", "172.30.79.12"),
    ]
    assert found.user == "pai"
    assert found.key_file == tmp_path.resolve() / ".pai/lab_ssh_key"
    assert found.known_hosts == tmp_path.resolve() / ".pai/known_hosts"


def test_state_dir_does_not_depend_on_how_the_site_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    assert state_dir_of(Path("a")) == state_dir_of(tmp_path / "a/../a") == tmp_path.resolve() / "a/.pai"


def test_the_shipped_lab_site_is_a_lab() -> None:
    root = Path(__file__).parents[3]
    found = spec_of(load_site(root / "layouts/lab").site)
    assert [machine.name for machine in found.machines] == ["lab-master", "lab-worker1", "lab-worker2"]
    assert found.key_file == root / "layouts/lab/.pai/lab_ssh_key"


GPU_LAYOUT = """
machine-sku:
  small: {mem: 1Gi, cpu: {vcore: 1}}
  big: {mem: 1Gi, cpu: {vcore: 1}, computing-device: {type: TYPE, model: A100, count: 4}}
machine-list:
  - {hostname: a, hostip: 172.30.79.11, machine-type: small, pai-master: "true"}
  - {hostname: b, hostip: 172.30.79.12, machine-type: big, pai-worker: "true"}
"""


@pytest.mark.parametrize(
    ("kind", "gpus"), [("nvidia.com/gpu", LabGpus("A100", 4)), ("amd.com/gpu", None), ("nvidia.com/mig-1g.5gb", None)]
)
def test_nvidia_gpus_of_a_type_are_the_machines(tmp_path: Path, kind: str, gpus: LabGpus | None) -> None:
    found = spec_of(load_site(write_site(tmp_path, GPU_LAYOUT.replace("TYPE", kind))).site)
    assert [machine.gpus for machine in found.machines] == [None, gpus]
