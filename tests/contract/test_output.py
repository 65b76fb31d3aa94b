"""No verb prints around system/plain.py: one module of the command line, and one of reports, write to terminals."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import jinja2
import pytest

from tests.addons import ROOT

PACKAGE = ROOT / "installer" / "pai_install"
# what they print passes plain_text
WRITERS = {"cli/output.py", "report/console.py"}
# programs of their own, on other machines
ELSEWHERE = (
    "agents/",
    "lab/stand_in/",
    "cluster/remote.py",
    "cluster/relay.py",
    "console/__main__.py",
    "monitoring/alertmanager.py",
    "health/collect/collector.py",
)
CALLS = {
    "click": {"echo", "secho", "prompt", "confirm", "pause", "echo_via_pager", "style"},
    "sys.stdout": {"write", "writelines", "buffer"},
    "sys.stderr": {"write", "writelines", "buffer"},
}
ALL = {name for names in CALLS.values() for name in names}
NAMES = {"print"}
# of logs, which their use cases escape unless a user asks for all of them
LOGS = {"cli/output.py", "cli/job.py", "cli/terminal.py"}


def prints(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ALL and node.attr in CALLS.get(ast.unparse(node.value), ()):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
            yield node.lineno, node.func.id
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich.console"):
            yield node.lineno, "rich.console"
        elif isinstance(node, ast.ImportFrom) and node.module == "click":
            yield from ((node.lineno, name.name) for name in node.names if name.name in CALLS["click"])


def test_verbs_print_through_one_module() -> None:
    offenders = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in WRITERS and not name.startswith(ELSEWHERE):
            offenders += [f"{name}:{line}: {what}" for line, what in prints(ast.parse(path.read_text()))]
    assert offenders == []


def test_only_logs_may_be_printed_as_they_are() -> None:
    using = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if "echo_log" in path.read_text()}
    assert using == LOGS


def documents(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of json.dumps and the like."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("dumps", "dump"):
            yield node


def test_documents_of_verbs_are_ascii() -> None:
    """JSON escapes what steers a terminal, but for characters beyond ASCII with ensure_ascii=False."""
    offenders = [
        f"{path.name}:{call.lineno}"
        for room in ("cli", "report", "app", "checks")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for call in documents(ast.parse(path.read_text()))
        if any(word.arg == "ensure_ascii" for word in call.keywords)
    ]
    assert offenders == []


def test_pages_escape_every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every environment of Jinja on the controller host that makes HTML."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "Environment":
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                assert words.get("autoescape") == "True", path
    templates = [*PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.html.j2")]
    assert templates
    for template in templates:
        text = template.read_text()
        assert "autoescape false" not in text, template
        tree = jinja2.Environment(autoescape=True).parse(text)
        used = {found.name for found in tree.find_all(jinja2.nodes.Filter)}
        assert not used & {"forceescape", "xmlattr"}, template
