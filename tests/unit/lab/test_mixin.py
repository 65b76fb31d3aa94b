"""Mix-ins: files that say what they leave, run once, as root, on a machine that is up."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode
from pai_install.lab import mixin
from pai_install.lab.mixin import FOLDER, as_resource, mix_in, mixins, mixins_of, script
from pai_install.lab.record import LabRecord
from pai_install.lab.spec import LabSpec
from pai_install.system.proc import Completed
from tests.errors import raises

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", mixins())
def test_every_mix_in_says_what_it_leaves_and_is_a_shell_script(spec: LabSpec, name: str) -> None:
    sentence = mixins()[name]
    assert len(sentence) > 30, "its first line is a comment that lab mixins shows"
    assert "." not in sentence[-1:]
    text = script(spec, spec.machines[0], name)
    subprocess.run(["sh", "-n"], input=text, text=True, check=True)
    assert text.index("set -eu") < text.index(sentence)


def test_every_mix_in_has_a_row_that_says_what_becomes_of_it() -> None:
    rows = (DOCS / "existing-machines.md").read_text()
    told = set(re.findall(r"`([a-z0-9-]+)`", "\n".join(line for line in rows.splitlines() if line.startswith("|"))))
    assert set(mixins()) - told == set()


def test_a_script_knows_its_machine(spec: LabSpec) -> None:
    text = script(spec, spec.machines[1], "forward-drop")
    for word in ("ADDRESS=172.30.79.12", "GATEWAY=172.30.79.1", "LOGIN=pai", "NAME=two"):
        assert f"{word}\n" in text


def test_it_runs_as_root_through_the_labs_key(spec: LabSpec, stand_in: Callable[..., Any]) -> None:
    ran = stand_in(mixin)
    mix_in(spec, spec.machines[0], "own-firewall")
    assert ran.commands[0].endswith("pai@172.30.79.11 -- sudo sh -s")
    assert "of the admin" in ran.inputs[0]


def test_a_mix_in_that_cannot_be_had_says_why_in_its_own_words(spec: LabSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "first this\nthe kernel has no such thing\n"
    monkeypatch.setattr(mixin, "run", lambda *_words, **_options: Completed((), 1, "", said))
    with raises("lab-mixin-impossible", "mix-in", "unified-cgroups") as caught:
        mix_in(spec, spec.machines[0], "unified-cgroups")
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    assert caught.value.details == "first this"


def test_the_record_tells_which_machine_had_which(spec: LabSpec) -> None:
    one, two = spec.machines
    record = LabRecord("lab", "site", (as_resource(one, "a"), as_resource(two, "b"), as_resource(one, "c")))
    assert mixins_of(LabRecord.from_json(record.to_json()), one) == ("a", "c")
    assert mixins_of(record, two) == ("b",)


def test_files_are_found_by_their_name() -> None:
    assert list(mixins()) == sorted(path.stem for path in FOLDER.glob("*.sh"))
