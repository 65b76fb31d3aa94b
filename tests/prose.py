"""Measures how plain English text is, per group of files: clauses in place of nouns, semicolons, long sentences."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from pai_install.cli.main import cli

ROOT = Path(__file__).parents[1]
LONG = 30
SHORTEST = 4
CELL = re.compile(r"(?<!\\)\|")
# what click writes of an option's default and range
LIMITS = re.compile(r"\[default: [^\]]*\]")
CLAUSE = re.compile(
    r"\b(what|whose|whoever|whichever|those (that|who|which)|(the )?one (that|who|which)) \w", re.IGNORECASE
)
# pages and lines that the code writes are measured as help texts and docstrings
GENERATED = re.compile(r"<!-- (?:generated: begin|Made by).*?(?:<!-- generated: end -->|\Z)", re.DOTALL)
CODE = re.compile(r"^ *(```+).*?^ *\1$", re.DOTALL | re.MULTILINE)
NOT_PROSE = re.compile(r"^(?:\s*\||#|    |\s*<).*$", re.MULTILINE)
BLOCK = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"])")
# of pai_install.checks.result
VERDICTS = frozenset(("failed", "passed", "skipped", "unknown", "warned"))
TEXT_NAME = re.compile(r"_?(message|remedy|advice|hint)", re.IGNORECASE)
SOURCES = ("installer/pai_install", "playbooks", "roles", "addons", "agents")


@dataclass(frozen=True)
class Measure:
    """Percentages of sentences."""

    clauses: int
    semicolons: int
    long: int

    def exceeds(self, limit: Measure) -> bool:
        """Whether any value is above its limit."""
        return self.clauses > limit.clauses or self.semicolons > limit.semicolons or self.long > limit.long


def measure(texts: Iterable[str]) -> Measure:
    """Returns the measure of `texts`, each value rounded up."""
    found = [sentence for text in texts for sentence in sentences(text)]
    counts = (
        sum(bool(CLAUSE.search(sentence)) for sentence in found),
        sum(";" in sentence for sentence in found),
        sum(len(sentence.split()) > LONG for sentence in found),
    )
    return Measure(*(-(-100 * count // max(1, len(found))) for count in counts))


def sentences(text: str) -> list[str]:
    """Returns the sentences of plain text or Markdown, without code, tables and headings."""
    text = "\n".join(text_lines(text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "X", text))
    blocks = (re.sub(r"\s+", " ", block) for block in BLOCK.split("\n" + text))
    found = (sentence for block in blocks for sentence in SENTENCE.split(block.strip()))
    return [sentence for sentence in found if len(sentence.split()) >= SHORTEST]


def text_lines(text: str) -> list[str]:
    """Returns the lines of Markdown without code, tables, headings, and generated parts."""
    return NOT_PROSE.sub("", CODE.sub("", GENERATED.sub("", text))).splitlines()


def pages(*patterns: str) -> Iterator[str]:
    """Yields the Markdown pages that match."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            yield path.read_text(encoding="utf-8")


def cells() -> Iterator[str]:
    """Yields the cells of all tables, generated ones included. The glossary lists words, not sentences."""
    for text in pages("README.md", "docs/*.md", "docs/reference/*.md", "docs/contributing/*.md", "roles/*/README.md"):
        if text.startswith("# Glossary"):
            continue
        for line in CODE.sub("", text).splitlines():
            if line.lstrip().startswith("|"):
                # a block of its own each: a cell is not part of the sentence before
                yield "\n\n".join(LIMITS.sub("", cell).replace("<br>", "\n\n").strip() for cell in CELL.split(line))


def help_texts(command: click.Command = cli) -> Iterator[str]:
    """Yields the help of a command, its options, and its subcommands."""
    yield re.sub(r"(?m)^\x08\n(.+\n?)*", "", command.help or "")
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from help_texts(child)


def trees() -> Iterator[ast.Module]:
    """Yields the syntax tree of each Python source of the product."""
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not {"tests", "molecule"} & set(path.parts):
                yield ast.parse(path.read_text(encoding="utf-8"))


def docstrings() -> Iterator[str]:
    """Yields the docstrings of modules, classes, and functions."""
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def modules() -> Iterator[str]:
    """Yields the descriptions of Ansible modules, their options, and their results."""
    for path in sorted((ROOT / "playbooks/library").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            match node:
                case ast.Assign(targets=[ast.Name(id="DOCUMENTATION" | "RETURN")], value=ast.Constant(value=str(text))):
                    yield from _descriptions(yaml.safe_load(text))


def _descriptions(value: Any) -> Iterator[str]:
    for key, entry in value.items() if isinstance(value, dict) else ():
        if key in {"description", "short_description"}:
            yield from map(str, entry if isinstance(entry, list) else [entry])
        else:
            yield from _descriptions(entry)


def errors() -> Iterator[str]:
    """Yields the messages of raised errors and all remedies."""
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                yield from (text for argument in node.exc.args for text in literals(argument))
            elif isinstance(node, ast.keyword) and node.arg in {"message", "remedy"}:
                yield from literals(node.value)


def findings() -> Iterator[str]:
    """Yields titles, rules, messages, and remedies of checks."""
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg in {"title", "reads", "rule"}:
                yield from literals(node.value)
    yield from messages()


def messages() -> Iterator[str]:
    """Yields messages and remedies of errors and findings. Their names or calls show that a text is one."""
    for tree in trees():
        for node in ast.walk(tree):
            match node:
                case ast.keyword(arg="message" | "remedy" | "advice", value=value):
                    yield from literals(value)
                case ast.Call(func=ast.Name(id=name), args=[text, *_]) if name in VERDICTS or name.endswith("Error"):
                    yield from literals(text)
                # problems of files: path, code, message, remedy
                case ast.Call(func=ast.Name(id="Wrong") | ast.Attribute(attr="add"), args=[_, _, text, remedy, *_]):
                    yield from (*literals(text), *literals(remedy))
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if TEXT_NAME.fullmatch(name):
                    yield from literals(value)


def literals(node: ast.expr) -> Iterator[str]:
    """Yields the texts of an expression, with an X for each value."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
        case ast.BinOp(left=left, right=right):
            yield from (*literals(left), *literals(right))
        case ast.IfExp(body=body, orelse=other):
            yield from (*literals(body), *literals(other))


def task_names() -> Iterator[str]:
    """Yields the names of tasks and blocks."""
    for pattern in ("roles/*/tasks/*.yml", "roles/*/handlers/*.yml", "playbooks/*.yml"):
        for path in sorted(ROOT.glob(pattern)):
            yield from _names(yaml.safe_load(path.read_text(encoding="utf-8")))


def _names(value: Any) -> Iterator[str]:
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            # plays have the titles of their phases, and imports need no name
            if not {"hosts", "ansible.builtin.import_playbook"} & set(entry):
                yield str(entry.get("name", ""))
            for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
                yield from _names(entry.get(key))


def console_texts() -> Iterator[str]:
    """Yields the English texts of the console's pages."""
    path = ROOT / "installer/pai_install/console/pages/texts/en.toml"
    yield from _texts(tomllib.loads(path.read_text(encoding="utf-8")))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for entry in value.values() if isinstance(value, dict) else ():
        yield from _texts(entry)


GROUPS: dict[str, Callable[[], Iterable[str]]] = {
    "guides": lambda: pages("docs/*.md", "docs/contributing/*.md"),
    "entry": lambda: pages("README.md", "CONTRIBUTING.md", "inventories/README.md"),
    "decisions": lambda: pages("docs/decisions/*.md"),
    "roles": lambda: pages("roles/*/README.md"),
    "help": help_texts,
    "errors": errors,
    "findings": findings,
    "docstrings": docstrings,
    "modules": modules,
    "tables": cells,
    "tasks": task_names,
    "console": console_texts,
    "changelog": lambda: pages("CHANGELOG.md"),
}
