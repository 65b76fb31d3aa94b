"""The words of `lab up`: for all machines, or for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.errors import ExitCode, PaiError
from pai_install.lab.machine_options import chosen
from pai_install.lab.spec import LabSpec


def test_nothing_is_chosen_by_itself(spec: LabSpec) -> None:
    made = chosen(spec, (), ())
    assert (made.suites, made.mixins) == ({}, {})


def test_a_word_is_for_all_machines_and_one_with_a_name_for_one(spec: LabSpec) -> None:
    assert chosen(spec, ["bookworm"], []).suites == {"one": "bookworm", "two": "bookworm"}
    assert chosen(spec, ["two=bookworm"], []).suites == {"two": "bookworm"}


@pytest.mark.parametrize("words", [("two=trixie", "bookworm"), ("bookworm", "two=trixie")])
def test_what_is_said_of_one_machine_counts_more(spec: LabSpec, words: tuple[str, ...]) -> None:
    assert chosen(spec, words, []).suites == {"one": "bookworm", "two": "trixie"}


def test_mix_ins_keep_their_order_and_come_once(spec: LabSpec) -> None:
    made = chosen(spec, (), ["two=forward-drop", "own-chrony", "two=own-chrony", "two=cni-stale"])
    assert made.mixins == {"one": ("own-chrony",), "two": ("own-chrony", "forward-drop", "cni-stale")}


def test_a_packed_system_is_named_by_its_file(spec: LabSpec, tmp_path: Path) -> None:
    packed = tmp_path / "noble.tar"
    packed.touch()
    assert chosen(spec, [f"one={packed}"], []).suites == {"one": str(packed)}


@pytest.mark.parametrize(
    ("suites", "mixins", "said"),
    [
        (["sid"], [], "sid: not a suite"),
        (["one=/nowhere/noble.tar"], [], "no such file"),
        (["three=bookworm"], [], "'three'"),
        ([], ["docker"], "'docker'"),
        ([], ["three=forward-drop"], "'three'"),
    ],
)
def test_what_does_not_exist_is_a_usage_error(spec: LabSpec, suites: list[str], mixins: list[str], said: str) -> None:
    with pytest.raises(PaiError, match=said) as caught:
        chosen(spec, suites, mixins)
    assert caught.value.exit_code is ExitCode.USAGE
