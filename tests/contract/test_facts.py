"""The facts of a machine: what pai_facts returns is what the type says, and roles and filters read nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
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


@pytest.mark.parametrize(("path", "words"), [pytest.param(*it, id=f"{it[0].name}-{'.'.join(it[1])}") for it in reads()])
def test_every_fact_that_is_read_is_in_the_type(path: Path, words: list[str]) -> None:
    model: type[BaseModel] | None = Observed
    for word in words:
        assert model is not None, f"{path}: {'.'.join(words)}"
        assert word in model.model_fields, f"{path}: {'.'.join(words)}"
        model = parts(model)[word]


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


@pytest.mark.parametrize("role", sorted(path.name for path in ROLES.iterdir()))
def test_a_role_that_reads_facts_observes_the_machine_first_and_no_other_does(role: str) -> None:
    """Each role can be used alone; where one before it in the play has observed the machine, it does not."""
    observes = yaml.safe_load((ROLES / role / "tasks" / "main.yml").read_text())[0] == OBSERVE
    paths = [path for path in (ROLES / role).rglob("*.*") if path.suffix in (".yml", ".j2")]
    texts = [path.read_text() for path in paths if "molecule" not in path.parts]
    assert observes == any(re.search(r"ansible_facts\.pai\b(?! is not defined)", text) for text in texts)
