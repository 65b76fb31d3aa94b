"""One `explain` for the checks of every verb."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_install.cli.main import run
from pai_install.errors import ExitCode


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("clock", ["preflight", "clock-warn-seconds = 1 (own)", "timedatectl"]),
        ("cluster-dns", ["verify", "nslookup", "8472"]),
        ("node-ready", ["status and verify", "kubectl get nodes"]),
        ("gpu-temperature", ["health", "temperature-margin =", "action:     drain"]),
        ("xid-79", ["Xid 79", "gpu-xid"]),
    ],
)
def test_checks_of_every_verb(check: str, words: list[str], capsys: Any, tmp_path: Path) -> None:
    assert run(["explain", check, "--site", str(tmp_path)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert [word for word in words if word not in out] == []


def test_without_a_check_all_are_listed(capsys: Any) -> None:
    assert run(["explain"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert [room for room in ("preflight:", "verify:", "status and verify:", "health:") if room not in out] == []
    assert "gpu-lost" in out


def test_a_misspelt_check_is_helped_on(capsys: Any) -> None:
    assert run(["explain", "disk-spase"]) == ExitCode.USAGE
    assert "did you mean disk-space" in capsys.readouterr().err
