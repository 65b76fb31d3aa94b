"""Divided sites and what each scheduler is given for them; `python -m tests.virtual_clusters` writes the files."""

from __future__ import annotations

from itertools import product

import pytest
import yaml

from pai_install.schedulers.compile import objects_of
from pai_install.scheduling.model import BACKENDS, Backend
from tests.virtual_clusters import CASES, GOLDEN, compiled, expected, expected_remarks, told, with_backend

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ALL = list(product(CASES, BACKENDS))


@pytest.mark.parametrize("backend", BACKENDS)
def test_objects_are_the_expected_ones(backend: Backend) -> None:
    assert compiled(backend) == expected(backend).read_text()


@pytest.mark.parametrize(("case", "backend"), ALL)
def test_labels_and_remarks_are_the_expected_ones(case: str, backend: Backend) -> None:
    assert told(case, backend) == expected_remarks(case, backend).read_text()


def test_every_file_is_of_a_case() -> None:
    assert set(GOLDEN.rglob("*.yml")) == set(map(expected, BACKENDS))
    assert set(GOLDEN.rglob("*.remarks")) == {expected_remarks(*one) for one in ALL}


@pytest.mark.parametrize(("case", "backend"), ALL)
def test_no_two_objects_have_one_name(case: str, backend: Backend) -> None:
    found = [
        (it["apiVersion"], it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"])
        for it in objects_of(with_backend(CASES[case](), backend))
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_files_are_what_yaml_reads_back(backend: Backend) -> None:
    """Each object of each case, and no other one."""
    kept = list(yaml.load_all(expected(backend).read_text(), LOADER))
    made = [one for case in CASES.values() for one in objects_of(with_backend(case(), backend))]
    assert [one for one in made if one not in kept] == []
    assert [one for one in kept if one not in made] == []
