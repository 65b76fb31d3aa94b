"""HiveD's image where the component source cannot have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.site.rules.scheduling.sites import lines, problems_of
from tests.unit.site.sites import CONFIG

MODULES = f"{CONFIG}component_source: modules\n"
CLUSTERS = "virtual-clusters:\n  - {name: a, quota: [{sku: a100, machines: 1}]}\n"
HIVED = f"scheduler:\n  type: hived\n{CLUSTERS}"


def test_modules_lack_it_and_what_helps_is_said(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, HIVED, config=MODULES)
    assert lines(problems, "error") == {2}
    (problem,) = [one for one in problems if one.code == "site.no-image"]
    assert "component_images" in problem.remedy


@pytest.mark.parametrize(
    ("services", "config"),
    [
        (HIVED, f"{MODULES}component_images: {{hivedscheduler: hived.tar}}\n"),
        (HIVED, CONFIG),
        (HIVED.replace("hived", "kueue"), MODULES),
        ("", MODULES),
    ],
    ids=["given as a file", "another source", "another scheduler", "none"],
)
def test_no_other_site_is_asked_for_it(services: str, config: str, tmp_path: Path) -> None:
    assert not [one for one in problems_of(tmp_path, services, config=config) if one.code == "site.no-image"]
