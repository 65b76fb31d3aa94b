"""What a product name tells, and who must therefore report what."""

from __future__ import annotations

import pytest

from pai_install.health.evidence import fields
from pai_install.health.evidence.devices import Traits, generation_of, traits_of
from pai_install.health.evidence.fields import Field, Need
from pai_install.health.evidence.parse.nvidia import Gpu
from pai_install.health.evidence.products import products

NAMES = {
    "Tesla K80": "Kepler",
    "GeForce GT 730": "Kepler",
    "GRID K520": "Kepler",
    "Tesla M60": "Maxwell",
    "GeForce GTX 980 Ti": "Maxwell",
    "Tesla P100-PCIE-16GB": "Pascal",
    "Tesla P4": "Pascal",
    "Quadro P2000": "Pascal",
    "GeForce GTX 1070": "Pascal",
    "Tesla V100-SXM2-32GB": "Volta",
    "NVIDIA TITAN V": "Volta",
    "Tesla T4": "Turing",
    "NVIDIA GeForce RTX 2080 SUPER": "Turing",
    "NVIDIA GeForce GTX 1660 Ti": "Turing",
    "Quadro RTX 8000": "Turing",
    "A100-SXM4-40GB": "Ampere",
    "NVIDIA A10G": "Ampere",
    "NVIDIA A40": "Ampere",
    "NVIDIA A30": "Ampere",
    "NVIDIA RTX A6000": "Ampere",
    "NVIDIA GeForce RTX 3090": "Ampere",
    "NVIDIA L40S": "Ada",
    "NVIDIA L4": "Ada",
    "NVIDIA GeForce RTX 4090": "Ada",
    "NVIDIA RTX 4000 SFF Ada Generation": "Ada",
    "NVIDIA H100 80GB HBM3": "Hopper",
    "NVIDIA GH200 480GB": "Hopper",
    "NVIDIA H200": "Hopper",
    "NVIDIA B200": "Blackwell",
    "NVIDIA GB200": "Blackwell",
    "NVIDIA GB300": "Blackwell",
    "NVIDIA GeForce RTX 5090": "Blackwell",
    "NVIDIA RTX PRO 6000 Blackwell": "Blackwell",
    "Something New": "",
    "": "",
}


@pytest.mark.parametrize(("name", "generation"), NAMES.items())
def test_generation_of_a_name(name: str, generation: str) -> None:
    assert generation_of(name) == generation


def gpu(name: str, architecture: str = "") -> Gpu:
    return Gpu("b", {"product_name": name, **({"product_architecture": architecture} if architecture else {})})


def test_the_stated_architecture_beats_the_name() -> None:
    assert traits_of(gpu("NVIDIA A100", "Hopper")).generation == "Hopper"
    assert traits_of(gpu("NVIDIA L40S", "Ada Lovelace")).generation == "Ada"
    assert traits_of(gpu("NVIDIA A100", "Feynman")).generation == "Ampere"
    assert traits_of(gpu("NVIDIA Graphics Device", "Rubin")).generation == "Rubin"
    assert traits_of(Gpu("b", {})).generation == ""


@pytest.mark.parametrize(
    ("name", "consumer", "fabric"),
    [
        ("NVIDIA GeForce RTX 4090", True, False),
        ("Quadro P2000", True, False),
        ("NVIDIA RTX PRO 6000 Blackwell", True, False),
        ("Tesla T4", False, False),
        ("NVIDIA L40S", False, False),
        ("NVIDIA H100 PCIe", False, False),
        ("NVIDIA H100 80GB HBM3", False, True),
        ("NVIDIA B200", False, True),
        ("NVIDIA GB200", False, True),
    ],
)
def test_classes(name: str, consumer: bool, fabric: bool) -> None:
    traits = traits_of(gpu(name))
    assert (traits.consumer, traits.fabric) == (consumer, fabric)


def field(need: Need, since: int = 0) -> Field:
    return Field("x", ("x",), need, since)


H100 = Traits("Hopper", consumer=False, fabric=True)
T4 = Traits("Turing", consumer=False, fabric=False)
GEFORCE = Traits("Ada", consumer=True, fabric=False)
NAMELESS = Traits("", consumer=False, fabric=False)


@pytest.mark.parametrize(
    ("need", "who"),
    [
        (Need.ALWAYS, (True, True, True, True)),
        (Need.DATACENTER, (True, True, False, True)),
        (Need.REMAPPING, (True, False, False, True)),
        (Need.RETIREMENT, (False, True, False, True)),
        (Need.FABRIC, (True, False, False, False)),
        (Need.OPTIONAL, (False, False, False, False)),
    ],
)
def test_who_must_report(need: Need, who: tuple[bool, ...]) -> None:
    assert tuple(traits.must_report(field(need), 580) for traits in (H100, T4, GEFORCE, NAMELESS)) == who


def test_older_drivers_need_not_print_newer_fields() -> None:
    assert not H100.must_report(field(Need.ALWAYS, 570), 535)
    assert H100.must_report(field(Need.ALWAYS, 570), 570)
    assert H100.must_report(field(Need.ALWAYS, 570), 0), "a driver without a version is no excuse"


def test_ages_are_in_order() -> None:
    names = list(products().generations)
    assert names[0] == "Kepler"
    assert [Traits(name, consumer=False, fabric=False).age for name in names] == list(range(len(names)))
    assert NAMELESS.age == -1


def test_no_path_belongs_to_two_fields() -> None:
    seen: dict[str, str] = {}
    for value in vars(fields).values():
        if isinstance(value, Field):
            for path in value.paths:
                assert seen.setdefault(path, value.name) == value.name


def test_every_generation_is_bounded_by_branches_that_are_maintained_or_ended() -> None:
    known = {*products().maintained_branches, *products().ended_branches}
    for generation in products().generations.values():
        newest = generation.age == len(products().generations) - 1  # its first branch may not be known yet
        assert generation.first_branch or generation.last_branch or newest, generation.name
        assert generation.last_branch is None or generation.last_branch in known, generation.name
