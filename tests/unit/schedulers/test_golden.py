"""Divided sites and what each scheduler is given for them; `python -m tests.virtual_clusters` writes the files."""

from __future__ import annotations

from itertools import product

import pytest
import yaml

from pai_install.schedulers.compile import objects_of
from pai_install.scheduling.model import BACKENDS, Backend
from tests import virtual_clusters
from tests.virtual_clusters import CASES, GOLDEN, compiled, expected, told, with_backend

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ALL = list(product(CASES, BACKENDS))


@pytest.mark.parametrize(("case", "backend"), ALL)
def test_objects_are_the_expected_ones(case: str, backend: Backend) -> None:
    assert compiled(case, backend) == expected(case, backend).read_text()


@pytest.mark.parametrize(("case", "backend"), ALL)
def test_labels_and_remarks_are_the_expected_ones(case: str, backend: Backend) -> None:
    assert told(case, backend) == expected(case, backend).with_suffix(".remarks").read_text()


def test_every_file_is_of_a_case() -> None:
    wanted = {expected(case, backend) for case, backend in ALL}
    assert set(GOLDEN.rglob("*.yml")) == wanted
    assert {path.with_suffix(".yml") for path in GOLDEN.rglob("*.remarks")} == wanted


@pytest.mark.parametrize(("case", "backend"), ALL)
def test_no_two_objects_have_one_name(case: str, backend: Backend) -> None:
    found = [
        (it["apiVersion"], it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"])
        for it in objects_of(with_backend(CASES[case](), backend))
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("case", CASES)
def test_the_files_are_what_yaml_reads_back(case: str) -> None:
    for backend in BACKENDS:
        objects = list(yaml.load_all(expected(case, backend).read_text(), LOADER))
        assert objects == list(objects_of(with_backend(virtual_clusters.CASES[case](), backend)))
