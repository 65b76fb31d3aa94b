"""Malformed files of a site give the recorded problems (tests/site_cases.py has their form).

A case replaces one file of a valid site. Where its lines are marked with `# <-`, exactly these lines have problems:
the marks are written by hand, the recorded problems by `pytest --update-snapshots`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from pai_install.site.load import SiteReading, read_site
from tests.site_cases import GOLDEN, Case, cases, update

CASES = cases()
MARK = "# <-"
# the others cannot carry marks (not YAML at all), or their problem is a line that is missing
MARKED = [case for case in CASES if MARK in case.text]


def read_file(name: str, content: bytes, site: Path) -> SiteReading:
    """Reads the valid site with one file replaced."""
    shutil.copytree(GOLDEN / "valid", site, dirs_exist_ok=True)
    (site / name).write_bytes(content)
    return read_site(site)


def lines_of(reading: SiteReading, site: Path) -> list[str]:
    """Every problem as `file:line:column severity code path: message`, with its remedy below."""
    lines = []
    for problem in reading.problems:
        file = Path(problem.file).relative_to(site)
        place = f"{file}:{problem.line}:{problem.column} {problem.severity} {problem.code}"
        lines.append(f"{place} {problem.path}: {problem.message}".replace(str(site), "SITE"))
        if problem.remedy:
            lines.append(f"    {problem.remedy}".replace(str(site), "SITE"))
    return lines


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_malformed_file_gives_its_problems(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    reading = read_file(case.file, case.text.encode(), tmp_path)
    lines = lines_of(reading, tmp_path)
    if pytestconfig.option.update_snapshots:
        update(case, lines)
    else:
        assert lines == list(case.problems)
    errors = [problem for problem in reading.problems if problem.is_error]
    assert (reading.site is None) == bool(errors)


@pytest.mark.parametrize("case", MARKED, ids=lambda case: case.name)
def test_problems_are_at_the_marked_lines(case: Case, tmp_path: Path) -> None:
    marked = {n for n, line in enumerate(case.text.splitlines(), start=1) if MARK in line}
    reading = read_file(case.file, case.text.encode(), tmp_path)
    assert {p.line for p in reading.problems if Path(p.file).name == case.file} == marked


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"machine-sku:\n  a:\x00\x01\n", ("site.syntax", 2, 5)),
        (b"machine-sku:\n  caf\xe9:\n    mem: 1Gi\n", ("site.encoding", 2, 6)),
    ],
)
def test_what_is_no_text_gives_one_problem(content: bytes, problem: tuple[str, int, int], tmp_path: Path) -> None:
    reading = read_file("layout.yaml", content, tmp_path)
    assert [(it.code, it.line, it.column) for it in reading.problems] == [problem]


def test_the_valid_site_has_no_problems(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "valid", tmp_path, dirs_exist_ok=True)
    assert read_site(tmp_path).problems == ()


def test_there_are_enough_cases_for_every_file() -> None:
    kinds = Counter(case.file for case in CASES)
    assert len(MARKED) >= 100
    assert kinds["layout.yaml"] >= 40
    assert kinds["config.yaml"] >= 25
    assert kinds["services-configuration.yaml"] >= 8


def test_names_of_cases_are_unique() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []
