"""The sections of --help, and --site at every level of the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pai_install.cli.main import cli, run
from pai_install.cli.verbs import SECTIONS, VERBS


def groups(command: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Group]]:
    """Yields every group of the command line below a command, with its words."""
    context = click.Context(command)
    yield words, command
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if isinstance(found, click.Group):
            yield from groups(found, (*words, name))


@pytest.mark.parametrize("group", [pytest.param(group, id=" ".join(words) or "top") for words, group in groups(cli)])
def test_every_group_accepts_the_site(group: click.Group) -> None:
    assert "--site" in {word for option in group.params for word in option.opts}


class TestSite:
    """The value that a verb gets."""

    @pytest.fixture
    def sites(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PAI_SITE", "environment")
        return tmp_path

    @pytest.mark.parametrize(
        ("words", "folder"),
        [
            (["--site", "outer", "init"], "outer"),
            (["--site", "outer", "init", "--site", "inner"], "inner"),
            (["init"], "environment"),
        ],
    )
    def test_the_nearest_one_counts(self, words: list[str], folder: str, sites: Path) -> None:
        assert run(words) == 0
        assert [path.name for path in sites.iterdir()] == [folder]

    def test_a_group_passes_it_on(self, sites: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["init", "--site", "mine"]) == 0
        assert run(["vc", "--site", "nowhere", "list"]) == 3
        assert str(Path("nowhere/layout.yaml")) in capsys.readouterr().err
        assert (sites / "mine").is_dir()

    def test_the_name_of_a_verb_may_be_a_folder(self, sites: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["--site", "lab", "vc", "list", "--format", "json"]) == 3
        assert '"ok": false' in capsys.readouterr().out
        assert list(sites.iterdir()) == []


def test_help_lists_every_verb_once_in_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:-1] for line in lines if line[:-1] in SECTIONS and line.endswith(":")] == list(SECTIONS)
    assert [word for line in lines if (word := line.split(" ")[2:3]) and word[0] in VERBS] == [[verb] for verb in VERBS]


def _commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _commands(below, (*words, name))
    else:
        yield words, command


def test_a_missing_argument_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for words, command in _commands(cli):
        missing = [one for one in command.params if one.required]
        if missing:
            code, said = run(words), capsys.readouterr().err
            if code != 2 or "Missing " not in said:
                wrong.append(" ".join(words))
    assert wrong == []


def test_help_imports_no_models() -> None:
    """They take half of its time."""
    code = "import sys; from pai_install.cli.main import run; run(['--help']); sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL).returncode == 0
