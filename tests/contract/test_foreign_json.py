"""Foreign JSON has one parser with limits, agents.common.values, and one for modules. Other uses are listed here."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.addons import ROOT

# file or folder of the package -> the texts that it parses with Python's own parser
PACKAGE: Mapping[str, str] = {
    "agents/common/values.py": "the parser with limits",
    "app/runs.py": "reports of our own runs",
    "console/model/reduced.py": "texts that it made of values with limits",
    "components/": "files of pinned components, with checksums",
    "health/collect/collector.py": "output of programs, on the machine itself, with a limit of size",
    "health/memory/store.py": "our own state folder",
    "lab/": "our own state folder",
    "run/journal.py": "our own state folder",
    "run/lock.py": "our own state folder",
    "run/saved.py": "a plan that the administrator made",
    "run/support/bundle.py": "our own state folder",
    "system/plain.py": "evidence, for health/evidence/file.py, which limits its size; it cuts deep values off",
}
# Modules run on the machine itself. Root of it can stop their steps anyway, and nothing else.
OWN, PROGRAM = "a root-owned file of the machine", "output of a program on the machine"
PLAYBOOKS: Mapping[str, str] = {
    "module_utils/pai_json.py": "the parser of modules",
    "action_plugins/pai_store.py": "a manifest of a pinned image, with its checksum",
    "filter_plugins/pai_containerd.py": "output of containerd on the machine, for a file there. An error ends its task",
    "filter_plugins/pai_kubeadm.py": "a copy of our own values",
    "library/pai_addons.py": OWN,
    "library/pai_artifacts.py": OWN,
    "library/pai_docker_reload.py": PROGRAM,
    "library/pai_facts.py": f"{OWN}, and {PROGRAM}",
    "library/pai_kubeadm.py": OWN,
    "library/pai_reset.py": OWN,
    "module_utils/pai_digests.py": OWN,
    "module_utils/pai_docker_cache_gc.py": f"{OWN}, and {PROGRAM}",
    "module_utils/pai_file_set.py": OWN,
    "module_utils/pai_images.py": PROGRAM,
    "module_utils/pai_in_use.py": OWN,
    "module_utils/pai_installed.py": OWN,
    "module_utils/pai_merging.py": OWN,
    "module_utils/pai_node_remains.py": PROGRAM,
    "module_utils/pai_origins.py": OWN,
    "module_utils/pai_pod_network.py": OWN,
    "module_utils/pai_probe_leftovers.py": PROGRAM,
    "module_utils/pai_probe_machine.py": f"{OWN}, and {PROGRAM}",
    "module_utils/pai_probe_network.py": PROGRAM,
    "module_utils/pai_registry.py": OWN,
    "module_utils/pai_running.py": OWN,
}
# programs that a role copies to machines
ROLES: Mapping[str, str] = {"docker_cache/files/docker_cache_gc.py": OWN}
PLACES = [(ROOT / "installer" / "pai_install", PACKAGE), (ROOT / "playbooks", PLAYBOOKS), (ROOT / "roles", ROLES)]
each_place = pytest.mark.parametrize(("folder", "allowed"), PLACES, ids=[folder.name for folder, _ in PLACES])


def sources(folder: Path) -> list[Path]:
    """Its modules, without the tests of roles."""
    return [path for path in folder.rglob("*.py") if "molecule" not in path.parts]


def parses(path: Path) -> bool:
    """Whether a module calls json.load, json.loads, or makes a decoder."""
    names = {"load", "loads", "JSONDecoder"}
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "json"
        and node.attr in names
        for node in ast.walk(ast.parse(path.read_text()))
    )


@each_place
def test_foreign_json_is_parsed_with_limits(folder: Path, allowed: Mapping[str, str]) -> None:
    files = {path.relative_to(folder).as_posix() for path in sources(folder) if parses(path)}
    assert {name for name in files if not name.startswith(tuple(allowed))} == set()
    assert {name for name in allowed if not any(file.startswith(name) for file in files)} == set()


@each_place
def test_nobody_imports_functions_of_json(folder: Path, allowed: Mapping[str, str]) -> None:
    """`from json import loads` would pass the test above."""
    assert allowed
    offenders = [
        path.name
        for path in sources(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "json"
    ]
    assert not offenders
