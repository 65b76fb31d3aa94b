"""Who may import whom, and how big things may get: docs/architecture.md as a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "installer" / "pai_install"
MODULES = sorted(PACKAGE.rglob("*.py"))

# room -> rooms it may import from; every room may use system, kube, and these single modules
NEUTRAL = {"errors", "json_schema", "schema_parts", "ports", "redact", "system", "kube", ""}
NEUTRAL_MODULES = {"checks.verdict", "checks.finding", "checks.result", "agents.common"}
ALLOWED = {
    "kube": set(),
    "documents": set(),
    "components": set(),
    "checks": set(),
    "site": {"documents"},
    "site_edit": {"documents", "site"},
    "migrate": {"documents", "site", "site_edit"},
    "cluster": {"site"},
    "lab": {"site"},
    "registry": {"site"},
    "storage": {"site"},
    "scheduling": {"documents", "site"},
    "profile": {"documents", "site", "storage", "scheduling"},
    "jobs": {"documents", "site", "storage", "scheduling", "profile", "cluster"},
    "schedulers": {"documents", "site", "site_edit", "storage", "scheduling", "profile", "jobs", "checks"},
    "users": {"site", "registry", "scheduling"},
    "monitoring": {"documents", "site", "registry", "scheduling"},
    "parts": {
        "documents",
        "site",
        "components",
        "registry",
        "storage",
        "scheduling",
        "profile",
        "jobs",
        "schedulers",
        "users",
        "monitoring",
    },
    "plan": {"documents", "site", "components", "registry", "scheduling", "schedulers", "parts"},
    "engine": {"plan", "parts"},
    "report": {
        "documents",
        "site",
        "registry",
        "storage",
        "scheduling",
        "profile",
        "schedulers",
        "jobs",
        "users",
        "plan",
        "engine",
        "cluster",
        "checks",
        "monitoring",
    },
    "preflight": {
        "documents",
        "site",
        "components",
        "parts",
        "plan",
        "engine",
        "report",
        "checks",
    },
    "health": {
        "documents",
        "site",
        "schedulers",
        "plan",
        "engine",
        "report",
        "cluster",
        "checks",
    },
    "run": {
        "documents",
        "site",
        "site_edit",
        "components",
        "registry",
        "storage",
        "scheduling",
        "profile",
        "schedulers",
        "jobs",
        "users",
        "parts",
        "plan",
        "engine",
        "report",
        "cluster",
        "health",
        "preflight",
        "checks",
    },
    "operations": {
        "documents",
        "site",
        "registry",
        "storage",
        "scheduling",
        "profile",
        "schedulers",
        "jobs",
        "users",
        "plan",
        "run",
        "cluster",
        "checks",
        "health",
    },
    "app": {
        "documents",
        "site",
        "site_edit",
        "components",
        "registry",
        "storage",
        "scheduling",
        "profile",
        "schedulers",
        "jobs",
        "users",
        "parts",
        "plan",
        "engine",
        "report",
        "run",
        "operations",
        "cluster",
        "health",
        "preflight",
        "checks",
        "monitoring",
    },
    "console": {
        "documents",
        "site",
        "storage",
        "scheduling",
        "profile",
        "jobs",
        "schedulers",
        "users",
        "report",
        "app",
        "cluster",
        "checks",
        "monitoring",
    },
    "cli": {
        "app",
        "documents",
        "components",
        "checks",
        "site",
        "site_edit",
        "migrate",
        "cluster",
        "lab",
        "registry",
        "storage",
        "scheduling",
        "profile",
        "jobs",
        "schedulers",
        "users",
        "monitoring",
        "parts",
        "plan",
        "engine",
        "report",
        "preflight",
        "health",
        "run",
        "operations",
    },
}
ONLY_IMPORTER = {
    "click": "cli/",
    "ansible_runner": "engine/runner.py",
    "rich": "report/",
    "starlette": "console/",
    "uvicorn": "console/",
    "argon2": "console/sign_in/hashing.py",
    "joserfc": "console/",
    "subprocess": "system/proc.py",
}
PURE = (
    "plan/",
    "operations/",
    "checks/",
    "health/cluster/conditions.py",
    "kube/model.py",
    "kube/objects.py",
    "cluster/conditions.py",
    "cluster/lines.py",
    "health/cluster/view.py",
    "kube/workloads.py",
    "health/evidence/parse/",
    "health/judge/",
    "preflight/rules/",
    "kube/volumes.py",
    "registry/compile.py",
    "registry/model.py",
    "registry/pull_secrets.py",
    "site_edit/",
    "storage/",
    "scheduling/",
    "schedulers/",
    "profile/",
    "jobs/",
    "users/",
    "preflight/judge.py",
    "preflight/needs.py",
)
IMPURE = {"os", "subprocess", "socket", "shutil", "tempfile", "urllib", "http", "time", "random"}
# run on a machine without the package; test_agents.py has the rules of agents
STANDALONE = {
    "health/collect/collector.py",
    "cluster/relay.py",
    *(path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "agents").rglob("*.py")),
}


def table() -> dict[str, set[str]]:
    """Room -> rooms it may use, as docs/architecture.md says."""
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    said: dict[str, set[str]] = {}
    for room, words in re.findall(r"^\| `(\w+)` \| .* \| ([^|]+) \|$", page, re.MULTILINE):
        rooms = {"-": set(), "everything but console": set(ALLOWED) - {room, "kube", "console"}}
        said[room] = rooms[words] if words in rooms else set(words.split(", "))
    return said


def test_the_page_says_what_the_test_does() -> None:
    assert table() == ALLOWED


def imports(path: Path) -> Iterator[str]:
    """Full names of what a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def place(path: Path) -> str:
    """The module's path below the package."""
    return path.relative_to(PACKAGE).as_posix()


def packages(path: Path) -> Iterator[str]:
    """Top-level packages of the imports."""
    return (name.split(".")[0] for name in imports(path))


def test_dependency_direction() -> None:
    assert [
        f"{place(path)} imports {name}"
        for path in MODULES
        for name in imports(path)
        if (room := path.relative_to(PACKAGE).parts[0]) in ALLOWED and not may_import(room, name)
    ] == []


def may_import(room: str, name: str) -> bool:
    """Whether a module of this room may import this name."""
    package, other, *_ = [*name.split("."), ""]
    if package != "pai_install":
        return True
    neutral = other in NEUTRAL or ".".join(name.split(".")[1:3]) in NEUTRAL_MODULES
    return neutral or other == room or other in ALLOWED[room]


def test_one_door_to_each_outside_thing() -> None:
    assert [
        f"{place(path)} imports {name}, only {ONLY_IMPORTER[name]} may"
        for path in MODULES
        if place(path) not in STANDALONE
        for name in packages(path)
        if name in ONLY_IMPORTER and not place(path).startswith(ONLY_IMPORTER[name])
    ] == []


def test_pure_rooms_do_no_io() -> None:
    assert [
        f"{place(path)} imports {name}"
        for path in MODULES
        if place(path).startswith(PURE)
        for name in packages(path)
        if name in IMPURE
    ] == []


def test_modules_stay_small() -> None:
    lines = {place(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {
        name: count
        for name, count in lines.items()
        if count > (1000 if name in STANDALONE and "agents/" not in name else 400)
    } == {}


def test_the_command_line_stays_thin() -> None:
    assert sum(len(path.read_text().splitlines()) for path in (PACKAGE / "cli").glob("*.py")) <= 3500


def test_functions_stay_small() -> None:
    assert [
        f"{place(path)}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    ] == []


def test_only_front_ends_write_to_standard_output() -> None:
    """A use case sends events and returns results: it must work without a terminal."""
    allowed = ("cli/", "report/console.py", "system/output.py", "lab/", "agents/")
    offenders = [
        place(path)
        for path in MODULES
        if not place(path).startswith(allowed) and place(path) not in STANDALONE and "sys.stdout" in path.read_text()
    ]
    assert offenders == []


def test_only_main_exits() -> None:
    assert [
        place(path)
        for path in MODULES
        if place(path) not in {"cli/main.py", "console/__main__.py", *STANDALONE}
        and re.search(r"sys\.exit\(|raise SystemExit", path.read_text())
    ] == []


def test_every_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        if place(path) in STANDALONE:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(place(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
