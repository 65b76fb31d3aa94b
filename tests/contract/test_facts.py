"""The facts of a machine: what pai_facts returns is what the type says, and roles and filters read nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml
from pydantic import BaseModel

from pai_install.parts.registry import system_namespaces, watched_units
from pai_install.plan.observed import Observed
from tests.ansible_path import PLAYBOOKS, module_util
from tests.unit.modules.conftest import Run, library, run_module

__all__ = ["library", "run_module"]

ROLES = PLAYBOOKS.parent / "roles"
# only on a control plane
OPTIONAL = {"cluster"}


def parts(model: type[BaseModel]) -> Mapping[str, type[BaseModel] | None]:
    """Field -> its model, None for a plain value."""
    found = {name: field.annotation for name, field in model.model_fields.items()}
    return {
        name: kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None for name, kind in found.items()
    }


def test_the_module_returns_exactly_what_the_type_names(run_module: Run) -> None:
    facts = run_module("pai_facts")["ansible_facts"]["pai"]
    assert facts.keys() | OPTIONAL == Observed.model_fields.keys()
    for name, model in parts(Observed).items():
        if model:
            assert facts[name].keys() == model.model_fields.keys(), name
    Observed.model_validate(facts, strict=False)


def reads() -> Iterator[tuple[Path, list[str]]]:
    """Each fact that a role or a filter names, as its path below `pai`."""
    for path in sorted(ROLES.rglob("*")):
        if path.suffix in (".yml", ".j2") and "molecule" not in path.parts:
            yield from (
                (path, words.split(".")) for words in re.findall(r"ansible_facts\.pai\.([\w.]+)", path.read_text())
            )
    for path in sorted((PLAYBOOKS / "filter_plugins").glob("*.py")):
        for words in re.findall(r"""facts((?:\[["']\w+["']\]|\.get\(["']\w+["'])+)""", path.read_text()):
            yield path, re.findall(r"""["'](\w+)""", words)


def test_roles_and_filters_read_facts() -> None:
    """The patterns above still find them."""
    assert {words[0] for _path, words in reads()} >= {"docker", "os", "cgroup_version", "virtualization", "mtu"}


def is_fact(words: list[str]) -> bool:
    """Whether the type has a field at this path."""
    model: type[BaseModel] | None = Observed
    for word in words:
        if model is None or word not in model.model_fields:
            return False
        model = parts(model)[word]
    return True


def test_every_fact_that_is_read_is_in_the_type() -> None:
    assert [f"{path}: {'.'.join(words)}" for path, words in reads() if not is_fact(words)] == []


def test_without_an_inventory_of_ours_the_same_is_watched() -> None:
    """What modules and roles take where nobody says is what the parts say."""
    assert system_namespaces() == module_util("pai_cluster_state").SYSTEM_NAMESPACES
    assert set(module_util("pai_running").WATCHED) == set(watched_units())
    told = [yaml.safe_load((ROLES / "cluster_verify/defaults/main.yml").read_text())["cluster_verify_namespaces"]]
    for module in ("pai_facts", "pai_cluster_check"):
        text = re.search(
            r'DOCUMENTATION = r"""(.+?)"""', (PLAYBOOKS / "library" / f"{module}.py").read_text(), re.DOTALL
        )
        assert text is not None
        told.append(yaml.safe_load(text[1])["options"]["namespaces"]["default"])
    assert told == [list(system_namespaces())] * 3


OBSERVE = {"name": "Observe the machine", "pai_facts": None, "when": "ansible_facts.pai is not defined"}


def observes(role: Path) -> bool:
    """Whether a role observes the machine first."""
    return bool(yaml.safe_load((role / "tasks" / "main.yml").read_text())[0] == OBSERVE)


def reads_facts(role: Path) -> bool:
    """Whether a role reads facts of the machine."""
    paths = [path for path in role.rglob("*.*") if path.suffix in (".yml", ".j2") and "molecule" not in path.parts]
    return any(re.search(r"ansible_facts\.pai\b(?! is not defined)", path.read_text()) for path in paths)


def test_a_role_that_reads_facts_observes_the_machine_first_and_no_other_does() -> None:
    """Each role can be used alone; where one before it in the play has observed the machine, it does not."""
    assert [role.name for role in ROLES.iterdir() if observes(role) != reads_facts(role)] == []
