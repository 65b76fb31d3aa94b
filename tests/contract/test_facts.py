"""The facts of a machine: what pai_facts returns is what the type says, and roles and filters read nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel

from pai_install.plan.observed import Observed
from tests.ansible_path import PLAYBOOKS
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
