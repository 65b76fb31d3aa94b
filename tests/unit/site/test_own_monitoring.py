"""The section monitoring: a switch or a mapping."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.site import Site
from pai_install.site.load import load_site, read_site
from pai_install.site.services.own_monitoring import Monitoring
from tests.unit.site.sites import write_site


def site(folder: Path, services: str) -> Site:
    return load_site(write_site(folder, config="user: pai\npassword: example\n", services=services)).site


@pytest.mark.parametrize("services", ["jobs: {}\n", "monitoring: false\n", "monitoring:\n"])
def test_it_is_off(tmp_path: Path, services: str) -> None:
    assert site(tmp_path, services).services.monitoring is None


@pytest.mark.parametrize("services", ["monitoring: true\n", "monitoring: {}\n"])
def test_it_is_on_with_defaults(tmp_path: Path, services: str) -> None:
    assert site(tmp_path, services).services.monitoring == Monitoring()


def test_its_values(tmp_path: Path) -> None:
    text = "monitoring: {retention: 30d, disk: 200Gi, replicas: 2, thresholds: {gpu-celsius: 85}}\n"
    found = site(tmp_path, text).services.monitoring
    assert found is not None
    assert (found.retention, found.disk, found.replicas) == (30, 200 * 2**30, 2)
    assert found.thresholds.gpu_celsius == 85


@pytest.mark.parametrize(
    ("services", "place", "code"),
    [
        ("monitoring: {retention: 0d}\n", "1:14", "site.range"),
        ("monitoring: {disk: 10}\n", "1:14", "site.quantity"),
        ("monitoring: {replicas: 4}\n", "1:14", "site.range"),
        ("monitoring: {thresholds: {gpu-celsius: hot}}\n", "1:27", "site.number"),
        ("monitoring: {web-hooks: [{name: team}]}\n", "1:26", "site.missing"),
        ("monitoring: [true]\n", "1:1", "site.boolean"),
    ],
)
def test_errors_are_at_the_users_line(tmp_path: Path, services: str, place: str, code: str) -> None:
    problems = read_site(write_site(tmp_path, services=services)).problems
    found = [(f"{it.line}:{it.column}", it.code) for it in problems if it.severity == "error"]
    assert found == [(place, code)]
