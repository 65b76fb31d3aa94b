"""What modules and conditions say has a declared check behind it, and every declared check is said by one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pai_install.health.cluster.checks import CATALOGUE

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("playbooks/library", "playbooks/module_utils", "installer/pai_install/health/cluster",
                   "installer/pai_install/plan", "installer/pai_install/run",
                   "installer/pai_install/schedulers/self_test")
    for path in (ROOT / folder).glob("*.py")
    if ("inding(" in path.read_text() or path.name == "guarantees.py")
    and path.name not in ("pai_finding.py", "checks.py", "preflight_gate.py")
)  # fmt: skip
MAKERS = ("finding", "own_finding", "Finding")


def said(path: Path) -> set[str]:
    """Patterns of the ids that a source names where it makes a finding; what is computed matches anything."""
    found = set()
    tree = ast.parse(path.read_text())
    constants = {
        name.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for name in node.targets
        if isinstance(name, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS and node.args:
            first = node.args[0]
            found |= pattern(constants.get(first.id, first) if isinstance(first, ast.Name) else first)
    return found


def pattern(node: ast.expr) -> set[str]:
    if isinstance(node, ast.Constant):
        return {re.escape(str(node.value))}
    if isinstance(node, ast.JoinedStr):
        parts = (re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in node.values)
        return {"".join(parts)}
    return set()


def words(path: Path) -> set[str]:
    """Patterns of every text of a source."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {found for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr) for found in pattern(node)}


def test_every_finding_has_a_declared_check() -> None:
    assert [
        f"{path.name}: {id_pattern}"
        for path in SOURCES
        for id_pattern in said(path)
        if not any(re.fullmatch(id_pattern, name) for name in CATALOGUE)
    ] == []


def test_every_declared_check_has_a_finding() -> None:
    spoken = {found for path in SOURCES for found in words(path) if 0 < len(found) < 40 and found != ".+"}
    assert [name for name in CATALOGUE if not any(re.fullmatch(found, name) for found in spoken)] == []


def test_the_sources_are_found() -> None:
    assert {"pai_node_check.py", "pai_cluster_check.py"} <= {path.name for path in SOURCES}
