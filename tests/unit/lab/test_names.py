"""Names on the box: short enough for the kernel, different for different labs and machines."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pai_install.lab.names import lab_names, machine_names
from pai_install.lab.spec import LabMachine, LabSpec


def test_names_are_derived_from_addresses(spec: LabSpec) -> None:
    lab = lab_names(spec)
    assert (lab.lab, lab.bridge, lab.nft_table) == ("172-30-79-0", "pb-ac1e4f00", "pai_lab_ac1e4f00")
    assert lab.record.name == "lab.json"
    assert lab.record.parent == lab.folder
    machine = machine_names(spec, spec.machines[0])
    assert (machine.veth, machine.netns, machine.nspawn) == ("pv-ac1e4f0b", "pai-172.30.79.11", "pai-ac1e4f0b")
    assert machine.folder == lab.folder / "one"


def test_everything_of_a_machine_is_below_its_folder(spec: LabSpec) -> None:
    names = machine_names(spec, spec.machines[0])
    paths = [names.root, names.upper, names.work, names.data, names.console, names.image, names.disk, names.base]
    assert all(path.is_relative_to(names.folder) for path in paths)
    assert len(set(paths)) == len(paths)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_interfaces_fit_the_kernel_and_differ(first: int, second: int) -> None:
    machines = [LabMachine("m", IPv4Address(number)) for number in (first, second)]
    specs = [LabSpec((machine,), "u", Path("/k"), Path("/s")) for machine in machines]
    veths = [machine_names(one, machine).veth for one, machine in zip(specs, machines, strict=True)]
    assert all(len(name) <= 15 for name in [*veths, *(lab_names(one).bridge for one in specs)])
    assert (veths[0] == veths[1]) == (first == second)


def test_two_labs_share_no_name(spec: LabSpec) -> None:
    other = replace(spec, machines=(LabMachine("one", IPv4Address("172.30.80.11")),))
    ours, theirs = lab_names(spec), lab_names(other)
    assert {ours.lab, ours.bridge, ours.nft_table, ours.folder}.isdisjoint(
        {theirs.lab, theirs.bridge, theirs.nft_table, theirs.folder}
    )
