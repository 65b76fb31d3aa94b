"""Completion in shells: the script, and names of the site."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from pai_install.cli.main import cli, run
from pai_install.cli.site_names import SiteName

LAYOUTS = Path(__file__).parents[3] / "layouts"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    shutil.copytree(LAYOUTS / "team", tmp_path / "team")
    return tmp_path / "team"


def completed(*words: str) -> list[str]:
    *before, incomplete = words
    shell = ShellComplete(cli, {}, "pai-install", "_PAI_INSTALL_COMPLETE")
    return [item.value for item in shell.get_completions(before, incomplete)]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("node", "drain", "a100-"), ["a100-1", "a100-2", "a100-3"]),
        (("apply", "--limit", "a100-1,t"), ["a100-1,t4-1"]),
        (("health", "history", "t4"), ["t4-1"]),
        (("node", "add", "new", "--machine-type", "a"), ["a100"]),
        (("job", "submit", "--group", "re"), ["research"]),
        (("user", "add", "alice", "--group", "research,pro"), ["research,production"]),
        (("job", "submit", "--vc", "p"), ["production"]),
        (("vc", "show", ""), ["default", "production", "research"]),
        (("storage", "show", "m"), ["models"]),
        (("job", "show", ""), []),
    ],
)
@pytest.mark.parametrize("at_the_top", [True, False])
def test_names_of_the_site(
    site: Path, words: tuple[str, ...], names: list[str], *, at_the_top: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_PASSWORD", "x")
    verb, *rest = words
    given = ("--site", str(site))
    line = (*given, verb, *rest) if at_the_top else (verb, rest[0], *given, *rest[1:])
    if not at_the_top and verb == "apply":
        line = (verb, *given, *rest)
    assert sorted(completed(*line)) == names


def test_a_site_that_cannot_be_read_completes_nothing(tmp_path: Path) -> None:
    assert completed("node", "drain", "--site", str(tmp_path), "") == []


def test_jobs_are_those_of_the_cluster() -> None:
    """The parameter asks the cluster; which jobs there are is a test of `job list`."""
    command = cli.get_command(click.Context(cli), "job")
    assert isinstance(command, click.Group)
    (name,) = [parameter for parameter in command.commands["logs"].params if parameter.name == "name"]
    assert isinstance(name.type, SiteName)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_PAI_INSTALL_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_another_shell_is_a_usage_error() -> None:
    assert run(["completion", "csh"]) == 2
