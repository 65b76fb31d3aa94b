"""The table of security controls is whole, and its checks can fail."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.hardening import evidence
from tests.hardening.controls import STATES, controls, section_of
from tests.hardening.judge import TESTS, problems, wanted, words

CONTROLS = controls()
# How many controls each section of the benchmark's version 1.12 has; its last chapter is told by section.
NUMBERS = {"1.1": 21, "1.2": 30, "1.3": 7, "1.4": 2, "2": 7, "3.1": 3, "3.2": 2, "4.1": 10, "4.2": 14, "4.3": 1, "5": 6}


def test_every_control_has_its_line() -> None:
    expected = [f"{section}.{number}" for section, count in NUMBERS.items() for number in range(1, count + 1)]
    assert [control.id for control in CONTROLS] == expected


def test_every_control_has_a_state_and_a_section() -> None:
    assert [it.id for it in CONTROLS if it.state not in STATES or not section_of(it)] == []
    assert [it.id for it in CONTROLS if it.state in {"not met", "not applicable"} and not it.why] == []


def test_what_holds_is_checked_and_nothing_else() -> None:
    # a token's life is no setting of a machine
    expected = [it.id for it in CONTROLS if it.state in {"met", "set"} and it.id != "3.1.3"]
    assert [it.id for it in CONTROLS if it.checks] == expected


def test_checks_have_words_and_can_fail() -> None:
    assert [
        (it.id, check)
        for it in CONTROLS
        for check in it.checks
        if not words(check) or problems(check, contrary(check)) == []
    ] == []


def contrary(check: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence against a check."""
    bad = {"lacks": f"x,{check.get('lacks')}", "absent": "given", "not": check.get("not")}
    value = next((bad[test] for test in bad if test in check), None)
    field = str(check.get("kubelet", check.get("proxy", "")))
    nested: Any = value
    for part in reversed(field.split(".")):
        nested = {part: nested}
    flag = [f"--{check.get('flag')}={value}"] if value else ["--other"]
    return {
        "files": {check.get("file"): [{"path": "/x", "mode": "777", "owner": "nobody:nogroup"}]},
        "texts": {check.get("file"): ""},
        "programs": {check.get("program"): flag},
        "anonymous": {check.get("anonymous"): 500},
        "kubelet": nested,
        "proxy": nested,
    }


@pytest.mark.parametrize(
    ("test", "good"),
    [
        ({"is": "false"}, "false"),
        ({"has": "Node"}, "Node,RBAC"),
        ({"lacks": "AlwaysAllow"}, "Node,RBAC"),
        ({"set": True}, "/a/file"),
        ({"only": "strong"}, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ],
)
def test_a_flag_of_a_program_that_runs(test: dict[str, Any], good: str) -> None:
    assert set(test) <= set(TESTS)
    check = {"program": "etcd", "flag": "x", **test}
    assert problems(check, {"programs": {"etcd": ["--first", f"--x={good}"]}}) == []


def test_nothing_is_said_of_a_program_that_does_not_run() -> None:
    with pytest.raises(AssertionError, match="does not run"):
        problems({"program": "etcd", "flag": "auto-tls", "absent": True}, {"programs": {"etcd": []}})


def test_weak_ciphers_are_no_strong_ones() -> None:
    check = {"kubelet": "tlsCipherSuites", "only": "strong"}
    assert problems(check, {"kubelet": {"tlsCipherSuites": ["TLS_RSA_WITH_AES_128_CBC_SHA"]}}) != []
    assert problems(check, {"kubelet": {"tlsCipherSuites": []}}) != []


def test_the_program_on_the_machine_sees_files_texts_and_processes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("words")
    path.chmod(0o640)
    checks = [{"file": str(path), "mode": "600", "holds": "words"}, {"program": Path(sys.executable).name}]
    source = Path(str(evidence.__file__))
    done = subprocess.run(
        [sys.executable, str(source)], input=json.dumps(wanted(checks)), capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert problems(checks[0], found) == [f"{path} has mode 640"]
    assert found["programs"][Path(sys.executable).name]
    assert re.fullmatch(r"\S+:\S+", found["files"][str(path)][0]["owner"])
