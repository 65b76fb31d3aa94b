"""The help of the verbs that run things, as users see it; PAI_RECORD=1 writes it anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pai_install.cli.main import run

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("verb", ["apply", "plan", "status"])
def test_help(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run([verb, "--help"]) == 0
    text = capsys.readouterr().out
    path = GOLDEN / f"{verb}.help"
    if "PAI_RECORD" in os.environ:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("arguments", [["--help"], ["apply", "--help"]])
def test_help_does_not_load_ansible(arguments: list[str]) -> None:
    code = (
        "import sys; from pai_install.cli.main import run; run(sys.argv[1:]);"
        "sys.exit(any(name.split('.')[0] in ('ansible_runner', 'ansible', 'kubernetes') for name in sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments", [["apply", "--nonsense"], ["apply", "extra"], ["plan", "--format", "xml"], ["apply", "--plan", "no"]]
)
def test_wrong_words_are_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "Usage" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["apply", "plan"])
def test_misspelt_phase_is_a_usage_error_that_names_the_right_one(
    verb: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run([verb, "--site", str(tmp_path), "--phase", "base,runtme"]) == 2
    error = capsys.readouterr().err
    assert "code: unknown-phase" in error
    assert not (tmp_path / ".pai").exists()


@pytest.mark.parametrize("value", ["", ",", " , "])
@pytest.mark.parametrize(
    "arguments",
    [
        ["apply", "--limit"],
        ["apply", "--limit", "one", "--limit"],
        ["apply", "--phase"],
        ["plan", "--phase"],
        ["verify", "--limit"],
        ["preflight", "--limit"],
        ["health", "--limit"],
    ],
)
def test_empty_list_of_names_does_not_mean_everything(
    arguments: list[str], value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, value]) == 2
    assert "is empty" in capsys.readouterr().err
