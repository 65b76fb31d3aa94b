"""The documentation says what the code does, and its links and examples hold."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from markdown_it import MarkdownIt
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.cli.main import cli
from pai_install.cli.verbs import VERBS
from pai_install.errors import ExitCode
from tests.docs.markdown import BEGIN, END, page, table, with_generated
from tests.docs.pages import ROOT, pages
from tests.docs.roles import ROLES, specification

PAGES = pages()
WRITTEN = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "inventories/README.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "roles").glob("*/README.md"),
    ]
)


def text_of(name: str) -> str:
    """A page as it is."""
    return (ROOT / name).read_text(encoding="utf-8")


def test_generated_pages_are_fresh() -> None:
    assert [name for name, text in PAGES.items() if text_of(name) != text] == [], "run `make docs`"


def test_links_lead_somewhere() -> None:
    assert [
        f"{name}: {target}"
        for name in WRITTEN
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(name))
        if "://" not in target and not ((ROOT / name).parent / target).exists()
    ] == []


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_inside_pages_lead_to_headings() -> None:
    assert [
        f"{name}: {path}#{anchor}"
        for name in WRITTEN
        for path, anchor in re.findall(r"\]\(([^)#\s]*\.md|)#([^)]+)\)", text_of(name))
        if anchor not in anchors((ROOT / name).parent / path if path else ROOT / name)
    ] == []


def test_every_guide_is_in_the_index() -> None:
    index = text_of("docs/README.md")
    guides = [path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md"]
    assert [name for name in guides if f"({name})" not in index] == []


def test_every_recipe_is_in_its_index() -> None:
    index = text_of("docs/contributing/README.md")
    recipes = [path.name for path in (ROOT / "docs" / "contributing").glob("*.md") if path.name != "README.md"]
    assert [name for name in recipes if f"({name})" not in index] == []


def commands(text: str) -> Iterator[list[str]]:
    """The words of each `pai-install` command line in a page's code."""
    fenced = re.findall(r"^```.*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^ {4}.*$", text, re.MULTILINE)
    for line in "\n".join([*fenced, *indented]).splitlines():
        if found := re.match(r"\s*(?:\$ )?(?:\./)?pai-install (.*)", line):
            yield shlex.split(found.group(1), comments=True)


def data_problem(kind: str, text: str) -> str:
    """Why a block of data cannot be read; empty if it can. A block may show one key with several values."""
    yaml_reader = YAML()
    yaml_reader.allow_duplicate_keys = True
    try:
        list(yaml_reader.load_all(text)) if kind == "yaml" else json.loads(text)
    except (YAMLError, ValueError) as error:
        return str(error)
    return ""


def test_blocks_of_data_can_be_read() -> None:
    blocks = [
        (name, block)
        for name in WRITTEN
        for block in MarkdownIt().parse(text_of(name))
        if block.info in {"yaml", "json"}
    ]
    assert blocks
    wrong = [(f"{name}:{block.map}", data_problem(block.info, block.content)) for name, block in blocks]
    assert [place for place in wrong if place[1]] == []


def is_operator(word: str) -> bool:
    """Whether the shell's own part of the line begins."""
    return word in {"|", ">", "&&", ";", "2>"} or word.startswith((">", "|"))


def test_command_lines_name_verbs_and_options_that_exist() -> None:
    assert [
        f"{name}: {unknown} in {' '.join(words)}"
        for name in WRITTEN
        if name != "docs/reference/cli.md"
        for words in commands(text_of(name))
        for unknown in unknown_words(list(takewhile(lambda word: not is_operator(word), words)))
    ] == []


def unknown_words(words: list[str]) -> Iterator[str]:
    """Options that the verb of a command line does not have; the whole line where it has no verb."""
    context = click.Context(cli, **cli.context_settings)
    command: click.Command = cli
    for word in takewhile(lambda word: word != "--", words):
        if word.startswith("-"):
            options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
            if word.split("=")[0] not in {*options, "--help", "-h"}:
                yield word
        elif isinstance(command, click.Group) and (found := command.get_command(context, word)) is not None:
            command = found
    if command is cli and not {"--help", "--version", "VERB"} & set(words):
        yield " ".join(words)


@pytest.mark.parametrize("role", ROLES)
class TestRolePage:
    """README of one role."""

    def test_says_what_belongs_there(self, role: str) -> None:
        headings = re.findall(r"^#+ (.*)$", text_of(f"roles/{role}/README.md"), re.MULTILINE)
        assert headings == [role, "Changes on the machine", "Repeated runs", "Variables", "Example"]

    def test_the_example_gives_declared_variables_and_all_required_ones(self, role: str) -> None:
        code = re.findall(r"```yaml\n(.*?)```", text_of(f"roles/{role}/README.md"), re.DOTALL)
        play: dict[str, Any] = yaml.safe_load(code[0])[0]
        assert [entry["role"] for entry in play["roles"]] == [role]
        options = specification(ROOT, role)["options"]
        given = set(play["roles"][0]["vars"])
        assert given <= set(options)
        assert {name for name, option in options.items() if option.get("required")} <= given


def test_every_verb_and_code_has_its_place() -> None:
    reference = PAGES["docs/reference/cli.md"]
    assert [verb for verb in VERBS if f"\n## {verb}\n" not in reference] == []
    assert [
        code for code in ExitCode if f"\n| {int(code)} | `{code.name}` |" not in PAGES["docs/reference/exit-codes.md"]
    ] == []


class TestMarkdown:
    """The pieces that pages are made of."""

    def test_cells_stay_in_their_row(self) -> None:
        assert list(table(("A", "B"), [("x|y", "two\n  lines")])) == ["| A | B |", "|---|---|", "| x\\|y | two lines |"]

    def test_only_the_generated_part_is_replaced(self) -> None:
        old = f"head\n{BEGIN}\nold\n{END}\ntail\n"
        assert with_generated(old, ["new"]) == f"head\n{BEGIN}\nnew\n{END}\ntail\n"

    def test_making_it_twice_changes_nothing(self) -> None:
        once = with_generated(f"{BEGIN}\n{END}", ["a", "b"])
        assert with_generated(once, ["a", "b"]) == once

    def test_every_pair_of_marks_has_its_own_part(self) -> None:
        old = f"{BEGIN}\n{END}\nbetween\n{BEGIN}\n{END}\n"
        assert with_generated(old, ["a"], ["b"]) == f"{BEGIN}\na\n{END}\nbetween\n{BEGIN}\nb\n{END}\n"
        with pytest.raises(ValueError, match="no marks"):
            with_generated(old, ["a"], ["b"], ["c"])

    @pytest.mark.parametrize("text", ["", f"{BEGIN}\n", f"{END}\n"])
    def test_a_page_without_marks_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="no marks"):
            with_generated(text, [])

    def test_a_page_ends_with_one_newline(self) -> None:
        assert page("T", ["line", "", ""]).endswith("line\n")
