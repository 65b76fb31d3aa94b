"""Malformed files, each beside the problems it must give: `CASE.layout.yaml` and `CASE.expected`.

A case replaces one file of a valid site. Where the input marks its lines with `# <-`, exactly those lines must
have problems: the marks were written by hand, the expected files record the words.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pai_install.site.load import SiteReading, read_site

GOLDEN = Path(__file__).parents[2] / "golden" / "site"
CASES = sorted(path for path in (GOLDEN / "invalid").iterdir() if path.suffix == ".yaml")
MARK = b"# <-"
# the others cannot carry marks (not YAML at all), or their problem is a line that is missing
MARKED = [case for case in CASES if MARK in case.read_bytes()]


def read_case(case: Path, site: Path) -> SiteReading:
    """Reads the valid site with one file replaced by the case's."""
    shutil.copytree(GOLDEN / "valid", site, dirs_exist_ok=True)
    shutil.copyfile(case, site / case.name.partition(".")[2])
    return read_site(site)


def lines_of(reading: SiteReading, site: Path) -> list[str]:
    """Every problem as `file:line:column severity code path: message`, with its remedy below."""
    lines = []
    for problem in reading.problems:
        file = Path(problem.file).relative_to(site)
        place = f"{file}:{problem.line}:{problem.column} {problem.severity} {problem.code}"
        lines.append(f"{place} {problem.path}: {problem.message}".replace(str(site), "SITE"))
        lines.append(f"    {problem.remedy}".rstrip().replace(str(site), "SITE"))
    return lines


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.partition(".")[0])
def test_malformed_file_gives_its_problems(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    expected = case.with_name(case.name.partition(".")[0] + ".expected")
    reading = read_case(case, tmp_path)
    assert lines_of(reading, tmp_path) == expected.read_text().splitlines()
    errors = [problem for problem in reading.problems if problem.is_error]
    assert (reading.site is None) == bool(errors)


@pytest.mark.parametrize("case", MARKED, ids=lambda case: case.name.partition(".")[0])
def test_problems_are_at_the_marked_lines(case: Path, tmp_path: Path) -> None:
    marked = {n for n, line in enumerate(case.read_bytes().splitlines(), start=1) if MARK in line}
    reading = read_case(case, tmp_path)
    file = case.name.partition(".")[2]
    assert {p.line for p in reading.problems if Path(p.file).name == file} == marked


def test_the_valid_site_has_no_problems(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "valid", tmp_path, dirs_exist_ok=True)
    assert read_site(tmp_path).problems == ()


def test_there_are_enough_cases_for_every_file() -> None:
    kinds = [case.name.partition(".")[2] for case in CASES]
    assert len(MARKED) >= 100
    assert kinds.count("layout.yaml") >= 40
    assert kinds.count("config.yaml") >= 25
    assert kinds.count("services-configuration.yaml") >= 8
